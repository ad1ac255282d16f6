"""The processes of a job: supervisor, worker, those that stand ready, and how an attempt ends."""
