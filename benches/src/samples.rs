//! What was measured round by round: medians, spreads and ratios.

/// One figure a round.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a round's figure.
    pub fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The figures, in the order of the rounds.
    #[must_use]
    pub fn figures(&self) -> &[f64] {
        &self.0
    }

    /// The middle one; the mean of the two in the middle where their number is even. NaN where there are none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        }
    }

    /// The least one; infinity where there are none.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// `self` over `other`, round by round.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, others)| mine / others).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The median, then the least and the greatest in brackets.
    #[must_use]
    pub fn show(&self, digits: usize) -> String {
        match &self.sorted()[..] {
            [] => "-".to_owned(),
            [only] => format!("{only:.digits$}"),
            [least, .., greatest] => {
                format!("{:.digits$} ({least:.digits$}..{greatest:.digits$})", self.median())
            }
        }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        assert!(Samples::default().median().is_nan());
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).least(), 1.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        let ratio = Samples(vec![2.0, 9.0]).over(&Samples(vec![1.0, 3.0]));
        assert_eq!((ratio.median(), ratio.show(1)), (2.5, "2.5 (2.0..3.0)".to_owned()));
    }
}
