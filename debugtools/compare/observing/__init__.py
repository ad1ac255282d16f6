"""The sides observed together: iteration by iteration, each pair as soon as both have a tensor."""
