//! Round numbers along an axis.

/// The ticks of an axis that begins at zero.
pub(super) struct Ticks {
    /// From zero to the end, at even distances.
    pub(super) places: Vec<f64>,
    /// Where the axis ends: at or above all that is drawn, above zero.
    pub(super) end: f64,
}

/// About so many ticks up to a number that is at least `greatest`: multiples of 1, 2, 2.5 or 5 of a power of ten.
pub(super) fn round_ticks(greatest: f64, about: usize) -> Ticks {
    let greatest = if greatest.is_finite() { greatest.clamp(0.0, 1e300) } else { 0.0 };
    if greatest < 1e-300 {
        return Ticks { places: vec![0.0], end: 1.0 };
    }
    let least = greatest / about.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| step * about as f64 >= greatest * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * power);
    let count = (greatest / step * (1.0 - 1e-9)).ceil().max(1.0) as usize;
    Ticks { places: (0..=count).map(|at| at as f64 * step).collect(), end: count as f64 * step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_round_and_reach_what_is_greatest() {
        for (greatest, expected) in [
            (20.0, &[0.0, 5.0, 10.0, 15.0, 20.0][..]),
            (7.3, &[0.0, 2.0, 4.0, 6.0, 8.0]),
            (101.0, &[0.0, 50.0, 100.0, 150.0]),
            (1.0, &[0.0, 0.25, 0.5, 0.75, 1.0]),
            (0.0, &[0.0]),
            (f64::NAN, &[0.0]),
        ] {
            assert_eq!(round_ticks(greatest, 4).places, expected, "{greatest}");
        }
    }

    #[test]
    fn whatever_is_greatest_the_axis_ends_at_or_above_it_and_not_far() {
        for exponent in -290..290 {
            for digit in [1.0, 1.7, 2.0, 3.3, 4.9, 9.99] {
                let greatest = digit * 10_f64.powi(exponent);
                let Ticks { places, end } = round_ticks(greatest, 4);
                assert!(
                    end >= greatest * (1.0 - 1e-6) && end <= 3.0 * greatest,
                    "{greatest}: {end}"
                );
                assert!((2..=5).contains(&places.len()), "{greatest}: {places:?}");
            }
        }
        assert!(round_ticks(f64::MAX, 4).end.is_finite());
    }
}
