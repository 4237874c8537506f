"""Minimisers to 50 digits, and records that move them far. Imports nothing from dpcore."""

import mpmath
import numpy as np
from scipy import optimize

DIGITS = 50


def exact_ball_ridge(phi, y, lam, radius):
    """Minimiser of sum (phi c - y)^2 + lam |c|^2 over |c| <= radius, by the secular equation."""
    with mpmath.workdps(DIGITS):
        phi, y = mpmath.matrix(phi.tolist()), mpmath.matrix(y.tolist())
        values, vectors = mpmath.eigsy(phi.T * phi)
        turned = vectors.T * (phi.T * y)
        width = len(values)

        def at(shift):
            return [turned[k] / (values[k] + lam + shift) for k in range(width)]

        def long(shift):
            return sum(entry**2 for entry in at(shift)) > mpmath.mpf(radius) ** 2

        shift = mpmath.mpf(0)
        if long(shift):
            high = mpmath.mpf(1)
            while long(high):
                high *= 2
            low = shift
            for _ in range(int(3.4 * DIGITS) + 60):
                shift = (low + high) / 2
                low, high = (shift, high) if long(shift) else (low, shift)
        return vectors * mpmath.matrix(at(shift))


def huber_ridge_to_few_digits(phi, y, lam, clip):
    """The same minimiser by a general optimiser."""

    def objective(c):
        e = np.abs(phi @ c - y)
        return np.sum(np.where(e < clip, e**2 / 2, clip * e - clip**2 / 2)) + lam / 2 * c @ c

    def gradient(c):
        return phi.T @ np.clip(phi @ c - y, -clip, clip) + lam * c

    return optimize.minimize(objective, np.zeros(phi.shape[1]), jac=gradient, tol=1e-14).x


def exact_huber_ridge(phi, y, lam, clip, near):
    """Minimiser of sum huber(phi c - y) + lam/2 |c|^2; checked by its gradient, whatever `near`.

    Fixed points of "solve with the records inside the clip, pull with the others" from `near` on.
    """
    with mpmath.workdps(DIGITS):
        phi, y = mpmath.matrix(phi.tolist()), mpmath.matrix(y.tolist())
        c, clip = mpmath.matrix(near.tolist()), mpmath.mpf(clip)
        for _ in range(30):
            residuals = phi * c - y
            matrix, right = lam * mpmath.eye(phi.cols), mpmath.zeros(phi.cols, 1)
            for i in range(phi.rows):
                row = phi[i, :].T
                if abs(residuals[i]) < clip:
                    matrix += row * row.T
                    right += row * y[i]
                else:
                    right -= row * clip * mpmath.sign(residuals[i])
            c = mpmath.lu_solve(matrix, right)
            gradient = lam * c
            for i, residual in enumerate(phi * c - y):
                gradient += phi[i, :].T * max(-clip, min(clip, residual))
            if mpmath.norm(gradient) < mpmath.mpf(10) ** (-DIGITS + 15):
                return c
        raise AssertionError("the oracle did not converge")


def distance(exact, computed):
    """l2 distance of a float vector from an exact one."""
    with mpmath.workdps(DIGITS):
        return float(mpmath.norm(exact - mpmath.matrix(computed.tolist())))


def unit_rows(rng, records, width, collinear=0.0):
    """Random rows of norm at most 1; `collinear` > 0 puts them that close to one line."""
    rows = rng.normal(size=(records, width))
    if collinear:
        rows = rng.normal(size=(records, 1)) * rng.normal(size=width) + collinear * rows
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))
