"""The filter's parts: from files of submissions to distinct tasks, in bounded memory.

    inputs ► reading ► grouping ► judging ► linking ► results

Each arrow is a set of files on disk, one per job, that hold whatever the next step needs; a job
that was done is never done again (`books`). Nothing depends on the order of the files, on the
number of partitions or on who worked: a text's 64-bit content hash orders everything.
"""
