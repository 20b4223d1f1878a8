//! Least squares of the logarithm of the error, with unknowns that stay above zero.
//!
//! Costs are looked for as factors on what is believed of them: a computer that is a hundred times
//! slower than a typical one is then as far from it as one that is a hundred times faster, a belief
//! pulls at both equally little, and no cost can become negative. Gauss's and Newton's steps, damped
//! where one overshoots, find the factors.

/// Seconds for each item, each unchanged item, each byte, and for a start.
pub(super) type Costs = [f64; 4];

/// Terms, what they add up to, and the weight of that.
pub(super) type Row = ([f64; 4], f64, f64);

/// How much each belief counts beside a run of weight 1, for a factor of e: it decides what the runs leave
/// open, and hardly anything else. A start is firmer, so that many items are slow before it is.
const BELIEF: [f64; 4] = [0.003, 0.003, 0.003, 0.03];
/// Most steps; a handful suffice.
const MOST_STEPS: usize = 100;
/// No cost is further than this factor of e from what is believed.
const FURTHEST: f64 = 25.0;

/// No step is longer than this, in factors of e.
const LONGEST_STEP: f64 = 2.0;

/// The costs that explain the rows best, and otherwise are near `believed`, each above zero.
pub(super) fn near(believed: &Costs, rows: &[Row]) -> Costs {
    let mut factors = [0.0; 4];
    let mut damping = 1e-3;
    let mut error = error_of(believed, rows, &factors);
    for _ in 0..MOST_STEPS {
        let Some(step) = step(believed, rows, &factors, damping) else { break };
        let longest = step.iter().fold(LONGEST_STEP, |longest, by| longest.max(by.abs()));
        let next: Costs = std::array::from_fn(|at| {
            let by = step[at] * LONGEST_STEP / longest;
            (factors[at] + by).clamp(-FURTHEST, FURTHEST)
        });
        let next_error = error_of(believed, rows, &next);
        if next_error < error {
            (factors, error, damping) = (next, next_error, damping / 4.0);
        } else if damping < 1e9 {
            damping *= 8.0;
        } else {
            break;
        }
    }
    costs(believed, &factors)
}

fn costs(believed: &Costs, factors: &[f64; 4]) -> Costs {
    std::array::from_fn(|at| believed[at] * factors[at].exp())
}

/// How far a row is off, as a power of e, and how much of it each term makes.
fn off((terms, sum, _): &Row, costs: &Costs) -> (f64, [f64; 4]) {
    let parts: [f64; 4] = std::array::from_fn(|at| terms[at] * costs[at]);
    let expected: f64 = parts.iter().sum();
    ((expected / sum).ln(), parts.map(|part| part / expected))
}

fn error_of(believed: &Costs, rows: &[Row], factors: &[f64; 4]) -> f64 {
    let costs = costs(believed, factors);
    let of_rows: f64 = rows.iter().map(|row| row.2 * off(row, &costs).0.powi(2)).sum();
    let of_beliefs = factors.iter().zip(BELIEF).map(|(factor, belief)| belief * factor.powi(2));
    of_rows + of_beliefs.sum::<f64>()
}

/// The next step; `None` if there is no single one.
fn step(believed: &Costs, rows: &[Row], factors: &[f64; 4], damping: f64) -> Option<[f64; 4]> {
    let costs = costs(believed, factors);
    let mut matrix = [[0.0; 5]; 4];
    for (at, line) in matrix.iter_mut().enumerate() {
        line[at] = BELIEF[at] * (1.0 + damping);
        line[4] = -BELIEF[at] * factors[at];
    }
    for row in rows {
        let (off, shares) = off(row, &costs);
        for (at, line) in matrix.iter_mut().enumerate() {
            (0..4).for_each(|to| line[to] += row.2 * shares[at] * shares[to]);
            line[at] += damping * row.2 * shares[at].powi(2);
            line[4] -= row.2 * shares[at] * off;
        }
    }
    eliminate(matrix)
}

/// Gauss's elimination with the largest pivot; `None` if there is no single solution.
fn eliminate(mut matrix: [[f64; 5]; 4]) -> Option<[f64; 4]> {
    for at in 0..4 {
        let pivot = (at..4).max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs()))?;
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
    let solved = [0, 1, 2, 3].map(|at| matrix[at][4] / matrix[at][at]);
    solved.iter().all(|cost| cost.is_finite()).then_some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_agree_are_explained_whatever_was_believed() {
        let row =
            |terms: [f64; 4]| (terms, 2.0 * terms[0] + 2.0 * terms[1] + 3.0 * terms[2] + 0.1, 1.0);
        let terms = [[10.0, 0.0, 20.0, 1.0], [0.0, 10.0, 10.0, 1.0], [10.0, 10.0, 0.0, 1.0]];
        let rows = terms.map(row);
        for believed in [[1.0; 4], [0.02, 2.0, 300.0, 0.1]] {
            let costs = near(&believed, &rows);
            for (cost, wanted) in costs.iter().zip([2.0, 2.0, 3.0]) {
                assert!((cost / wanted - 1.0).abs() < 0.15, "{costs:?}");
            }
        }
    }

    #[test]
    fn more_work_in_less_time_makes_no_negative_cost() {
        let rows = [
            ([1.0, 5.0, 0.0, 1.0], 1.0, 1.0),
            ([2.0, 0.0, 0.0, 1.0], 4.0, 1.0),
            ([1.0, 9.0, 0.0, 1.0], 0.5, 1.0),
        ];
        let costs = near(&[1.0; 4], &rows);
        assert!(costs.iter().all(|cost| *cost > 0.0), "{costs:?}");
    }

    #[test]
    fn what_rows_say_nothing_of_stays_as_it_was_believed() {
        let believed = [2.0, 3.0, 4.0, 0.1];
        assert_eq!(near(&believed, &[]), believed);
        let costs = near(&believed, &[([10.0, 0.0, 0.0, 1.0], 0.5, 1.0)]);
        assert_eq!(costs[1..3], [3.0, 4.0]);
        assert!(costs[0] < 0.1, "{costs:?}");
    }
}
