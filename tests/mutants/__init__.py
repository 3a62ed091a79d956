"""Small changes of the code that some test should notice, and a list of those that none does.

    python tests/mutants/run.py --modules joins delivery --sample 50 --seed 1

A mutant is the code with one operator, constant or statement changed.  Those of some rooms are
counted, a sample of them is drawn by the seed, and each is tried in a copy of the checkout by the
tests that are related to its module, nearest file first: it is **killed** by the first that fails,
or by taking too long, and **survives** them all.  `rooms.py` says which modules are a room and what
tests are related to all of it; those that import a module, or are called as it is, are related to
it too.  Of these only such are run as `reach.py` has seen to run the changed statement, quickest
first, and those of files that start processes, where it sees nothing; all, where none is seen to.
Files that fail without any mutant, as some do where the machine is busy, are left out and named;
a mutant that only these may have noticed is **not tried**, which makes the run fail, too.

A survivor is a test that is missing, code that does nothing, or a change that changes nothing; the
last are listed in `equivalent.txt` with the reason.  Others make the run fail.

The changes are those of Cosmic Ray, and two of our own.  Its sessions are not used: they try one
command for all modules, in the checkout itself, and every mutant; what is here would have to stand
around them.  mutmut has no sample either, changes functions only, and begins with a run of the
whole suite; it tells mutants from each other inside the process, which those of our tests that
start a broker or a shard are not in.
"""
