"""A soak of the job layer: comparisons while app, command line, workers and supervisors die by SIGKILL.

    python -m tests.support.soak [--comparisons 100] [--seed 1] [--together 2] [--output docs/evidence/soak.txt]

Each comparison is started by an app (which submits it to a supervisor of its own) or by a command line (which
supervises it itself), in a process of its own. At a random instant one of those who take part is killed, or all of
them. Then the job is looked at by a fresh client, retried if it did not end well, and perhaps shot at again. Checked:

- no job reads done unless its result is there and its rows are those of an undisturbed run;
- no row that was on file before a kill is missing after it;
- after a kill the worker and its children are gone within a second, and the job reads as ended;
- at the end no lease is taken and no process is left.

The plan follows from the seed; the instants are real time, so what they hit varies.
"""
