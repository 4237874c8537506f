"""Distance: in what sense a statistic moves between neighbours."""

import enum


class Distance(enum.StrEnum):
    """The norm in which a sensitivity is stated; a mechanism accepts exactly one.

    `l1`, `l2`, `linf`: on the real coordinates (a complex coordinate counts as two; symmetric
    matrices travel as isometric vectors, so that Frobenius is l2). `rkhs`: the norm of a function
    in its kernel's space. `psd_rows`: a Gram matrix of rows, one row of which moves in l2.
    `hamming`: the number of entries that differ.
    """

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"
    RKHS = "rkhs"
    PSD_ROWS = "psd_rows"
    HAMMING = "hamming"
