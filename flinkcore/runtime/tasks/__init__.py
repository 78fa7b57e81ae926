"""Tasks: operators in chains, the ways between them, and what is made of a job's steps."""
