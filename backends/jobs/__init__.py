"""Jobs: requests on file that processes of their own carry out, with what clients and actions need of them."""
