//! Least squares of the relative error with three unknowns, none below zero.
//!
//! With three unknowns the eight ways of setting some of them to zero are tried, each solved
//! exactly; the best one without a negative value is the solution.

/// Terms, what they are to add up to, and the weight of that.
type Row = ([f64; 3], f64, f64);

/// The non-negative costs with the smallest weighted sum of squared relative errors.
pub(super) fn non_negative(rows: &[Row]) -> [f64; 3] {
    // Each row divided by what it is to give: the error is then a share. Columns are scaled to
    // length 1, since bytes are many and items are few.
    let mut scaled: Vec<_> =
        rows.iter().map(|(terms, sum, weight)| (terms.map(|term| term / sum), *weight)).collect();
    let lengths = [0, 1, 2].map(|at| {
        let square: f64 = scaled.iter().map(|(terms, weight)| weight * terms[at].powi(2)).sum();
        if square.is_finite() && square > 0.0 { square.sqrt() } else { f64::INFINITY }
    });
    for (terms, _) in &mut scaled {
        (0..3).for_each(|at| terms[at] /= lengths[at]);
    }
    let candidates = (1..8_u8).filter_map(|chosen| solve(&scaled, chosen));
    let possible = candidates.filter(|costs| costs.iter().all(|cost| *cost >= 0.0));
    let best = possible.min_by(|a, b| error(&scaled, a).total_cmp(&error(&scaled, b)));
    let best = best.unwrap_or([0.0; 3]);
    [0, 1, 2].map(|at| best[at] / lengths[at])
}

fn error(rows: &[([f64; 3], f64)], costs: &[f64; 3]) -> f64 {
    let one = |(terms, weight): &([f64; 3], f64)| {
        let sum: f64 = terms.iter().zip(costs).map(|(term, cost)| term * cost).sum();
        weight * (sum - 1.0).powi(2)
    };
    rows.iter().map(one).sum()
}

/// Solves the normal equations for the unknowns whose bit is set in `chosen`; the others are 0.
fn solve(rows: &[([f64; 3], f64)], chosen: u8) -> Option<[f64; 3]> {
    let is_chosen = |at: usize| chosen & (1 << at) != 0;
    let mut matrix = [[0.0; 4]; 3];
    for (at, line) in matrix.iter_mut().enumerate() {
        if !is_chosen(at) {
            line[at] = 1.0;
            continue;
        }
        for (terms, weight) in rows {
            (0..3)
                .filter(|&to| is_chosen(to))
                .for_each(|to| line[to] += weight * terms[at] * terms[to]);
            line[3] += weight * terms[at];
        }
    }
    eliminate(matrix)
}

/// Gauss's elimination with the largest pivot; `None` if there is no single solution.
fn eliminate(mut matrix: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let pivot = (at..3).max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs()))?;
        matrix.swap(at, pivot);
        let head = matrix[at];
        if !head[at].is_finite() || head[at].abs() < 1e-12 {
            return None;
        }
        for (_, line) in matrix.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = line[at] / head[at];
            line.iter_mut().zip(head).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let solved = [0, 1, 2].map(|at| matrix[at][3] / matrix[at][at]);
    solved.iter().all(|cost| cost.is_finite()).then_some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_rows_are_solved_exactly() {
        let rows =
            [([1.0, 0.0, 2.0], 8.0, 1.0), ([0.0, 1.0, 1.0], 5.0, 1.0), ([1.0, 1.0, 0.0], 4.0, 1.0)];
        let costs = non_negative(&rows);
        for (cost, wanted) in costs.iter().zip([2.0, 2.0, 3.0]) {
            assert!((cost - wanted).abs() < 1e-9, "{costs:?}");
        }
    }

    #[test]
    fn a_cost_that_would_be_negative_is_none() {
        // The more unchanged items, the less time: nonsense, which must not become a credit.
        let rows =
            [([1.0, 5.0, 0.0], 1.0, 1.0), ([2.0, 0.0, 0.0], 4.0, 1.0), ([1.0, 9.0, 0.0], 0.5, 1.0)];
        let costs = non_negative(&rows);
        assert!(costs.iter().all(|cost| *cost >= 0.0), "{costs:?}");
        assert_eq!(costs[1], 0.0);
    }
}
