//! Rates of a pilot pass that may be wrong.

use crate::{Asked, PilotRate, PilotShare};

impl Asked {
    /// One sentence for each contender because of which loads may be at a wrong share when the pilot pass is over:
    /// see [`Asked::doubts_of_pilots`]. Under loads that the race has, too, it will show that itself.
    pub fn doubts_of_pilot(&self) -> Vec<String> {
        self.doubts_of_pilots(|one| !self.loads.contains(&one.load))
    }

    /// One sentence for each of these contenders that decides a rate, or would by what it did right afterwards, and
    /// whose own was not steady when its warm-up was over, or another one afterwards; or that failed, so shares do not
    /// consider it.
    pub fn doubts_of_pilots(&self, is_open: impl Fn(&PilotRate) -> bool) -> Vec<String> {
        let ranked = |one: &&PilotRate| !self.is_reference(&one.contender) && is_open(one);
        self.pilot.iter().filter(ranked).filter_map(|one| self.doubt_of(one)).collect()
    }

    fn doubt_of(&self, one: &PilotRate) -> Option<String> {
        let mut shares = self.pilot_shares.iter().filter(|share| share.load == one.load);
        if let Some(because) = &one.failed {
            // An exhibit fails by design.
            let mut shares = shares.filter(|_| !self.is_exhibit(&one.contender));
            return shares.next().map(|_| failed(one, because));
        }
        let passes = |rate: f64, share: &PilotShare| {
            self.decider(share).map(|decider| share.of.passes(rate, decider.rate_per_s))
        };
        if shares.clone().any(|share| passes(one.rate_per_s, share) == Some(1.0)) {
            return self.unsteady(one).or_else(|| changed(one));
        }
        let window = one.window_rate_per_s?;
        let share = shares.find(|share| passes(window, share).is_some_and(|by| by > 1.0))?;
        Some(would_decide(one, window, share))
    }

    fn unsteady(&self, one: &PilotRate) -> Option<String> {
        let seconds = one.unsteady_after_s?;
        let window = one.window_rate_per_s.map_or_else(String::new, |window| {
            format!(" ({:.0}/s, and {window:.0}/s right after that)", one.rate_per_s)
        });
        Some(format!(
            "the rate of {} at {} is not known to have been steady after {seconds:.1} s of its pilot{window}, so \
             loads at a share of it may have a rate that is too low or too high; give the rate as a number{}",
            one.contender,
            one.load,
            self.more_time_for_pilots(seconds)
        ))
    }
}

fn changed(one: &PilotRate) -> Option<String> {
    let window = one.window_rate_per_s?;
    Some(format!(
        "the rate of {} at {} was {:.0}/s while it was steady in its pilot, and {window:.0}/s right after that, so \
         loads at a share of it may have a rate that is too low or too high; run the race again, or give the rate as a \
         number",
        one.contender, one.load, one.rate_per_s
    ))
}

fn would_decide(one: &PilotRate, window: f64, share: &PilotShare) -> String {
    let of = share.of.name();
    format!(
        "the rate of {} at {} was {:.0}/s in its pilot, and {window:.0}/s right after that: with that it would be the \
         {of}, so loads at a share of the {of} may have a rate that is too {}; run the race again, or give the rate as \
         a number",
        one.contender,
        one.load,
        one.rate_per_s,
        share.of.too(true)
    )
}

fn failed(one: &PilotRate, because: &str) -> String {
    format!(
        "{} at {} has no rate from its pilot, so loads at a share of the slowest or fastest contender do not consider \
         it ({because}); if it is to count, mend that, or give the rate as a number",
        one.contender, one.load
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXHIBIT, Entry, Extreme, LoadShape};

    const LOAD: LoadShape = LoadShape::closed(64, 1);

    fn pilot(contender: &str, rate_per_s: f64, window_rate_per_s: Option<f64>) -> PilotRate {
        let contender = contender.into();
        let (failed, unsteady_after_s) = (None, Some(2.0));
        PilotRate {
            contender,
            load: LOAD,
            rate_per_s,
            failed,
            window_rate_per_s,
            unsteady_after_s,
            took_s: 1.5,
        }
    }

    fn asked(pilot: Vec<PilotRate>, shares: &[Extreme]) -> Asked {
        let pilot_shares = shares.iter().map(|&of| PilotShare { load: LOAD, of }).collect();
        Asked { pilot, pilot_shares, time_s: Some(60.0), ..Asked::default() }
    }

    #[test]
    fn a_contender_that_decides_or_would_is_named_once() {
        let doubted = |of: Extreme, windows: [Option<f64>; 3]| {
            let [fast, middle, slow] = windows;
            let pilots = vec![
                pilot("fast", 9_000.0, fast),
                pilot("middle", 5_000.0, middle),
                pilot("slow", 2_000.0, slow),
                pilot("null", 1.0, Some(1.0)),
            ];
            let named = |share: &[Extreme]| -> Vec<String> {
                let doubts = asked(pilots.clone(), share).doubts_of_pilot();
                let name = |doubt: &String| {
                    doubt["the rate of ".len()..].split(' ').next().map(str::to_owned)
                };
                doubts.iter().filter_map(name).collect()
            };
            assert_eq!(named(&[]), [""; 0], "no load is at a share of any");
            assert_eq!(named(&[of, of]), named(&[of]));
            named(&[of])
        };
        use Extreme::{Fastest, Slowest};
        assert_eq!(doubted(Slowest, [None; 3]), ["slow"]);
        assert_eq!(doubted(Fastest, [None; 3]), ["fast"]);
        // Between the two.
        let within = [Some(3_000.0), Some(8_000.0), Some(2_500.0)];
        assert_eq!(doubted(Slowest, within), ["slow"]);
        assert_eq!(doubted(Fastest, within), ["fast"]);
        // One that has passed the one that decides.
        let beyond = [Some(1_500.0), Some(9_500.0), None];
        assert_eq!(doubted(Slowest, beyond), ["fast", "slow"]);
        assert_eq!(doubted(Fastest, beyond), ["fast", "middle"]);
    }

    #[test]
    fn each_cause_has_one_sentence() {
        let pilots = vec![pilot("S", 10_000.0, Some(7_000.0)), pilot("J", 12_000.0, Some(3_000.0))];
        let all = asked(pilots, &[Extreme::Slowest]);
        assert_eq!(
            all.doubts_of_pilot(),
            [
                "the rate of S at 64 conn is not known to have been steady after 2.0 s of its pilot (10000/s, and \
                 7000/s right after that), so loads at a share of it may have a rate that is too low or too high; give \
                 the rate as a number, or allow more time (--time: all pilots have a quarter of it)",
                "the rate of J at 64 conn was 12000/s in its pilot, and 3000/s right after that: with that it would be \
                 the slowest, so loads at a share of the slowest may have a rate that is too high; run the race again, \
                 or give the rate as a number"
            ]
        );
        let raced = Asked { loads: vec![LOAD], ..all.clone() };
        assert_eq!(raced.doubts_of_pilot(), [""; 0], "the race itself will show it");
        assert_eq!(raced.doubts_of_pilots(|_| true), all.doubts_of_pilot());
        let mut steady = all.clone();
        steady.pilot[0].unsteady_after_s = None;
        let changed = &steady.doubts_of_pilot()[0];
        assert!(changed.starts_with(
            "the rate of S at 64 conn was 10000/s while it was steady in its pilot, and 7000/s"
        ));
        assert_eq!(steady.doubts_of_pilot().len(), 2);
    }

    #[test]
    fn a_contender_without_a_rate_is_named_with_the_reason() {
        let failed = PilotRate {
            failed: Some("J exited with status 3".into()),
            unsteady_after_s: None,
            ..pilot("J", 0.0, None)
        };
        let steady = PilotRate { unsteady_after_s: None, ..pilot("S", 10_000.0, None) };
        let doubts = |shares| asked(vec![steady.clone(), failed.clone()], shares).doubts_of_pilot();
        assert_eq!(
            doubts(&[Extreme::Slowest, Extreme::Fastest]),
            [
                "J at 64 conn has no rate from its pilot, so loads at a share of the slowest or fastest contender do \
                 not consider it (J exited with status 3); if it is to count, mend that, or give the rate as a number"
            ]
        );
        let (name, about) = ("J".to_owned(), format!("{EXHIBIT} sends wrong replies"));
        let exhibit = Entry { name, about, ..Entry::default() };
        let pilots = vec![steady.clone(), failed.clone()];
        let raced = Asked { entries: vec![exhibit], ..asked(pilots, &[Extreme::Slowest]) };
        assert_eq!(raced.doubts_of_pilot(), [""; 0], "an exhibit fails by design, on each run");
        assert_eq!(doubts(&[]), [""; 0]);
    }

    #[test]
    fn the_bound_that_was_reached_is_named() {
        let advice = |settle_s, time_s, warm_up_s| {
            Asked { settle_s, time_s, ..Asked::default() }.more_time_for_pilots(warm_up_s)
        };
        let settle = ", or allow longer warm-ups (--settle, up to 20 s)";
        assert_eq!(advice(1.5, None, 5.9), settle);
        assert_eq!(advice(1.5, Some(60.0), 5.9), settle);
        assert_eq!(advice(30.0, None, 19.9), "", "there is no longer one");
        let time = ", or allow more time (--time: all pilots have a quarter of it)";
        assert_eq!([5.4, 0.3].map(|after_s| advice(1.5, Some(60.0), after_s)), [time; 2]);
        let fewer = ", or race fewer contenders or loads (all pilots have 5 minutes)";
        assert_eq!(advice(30.0, Some(7_200.0), 3.0), fewer);
        assert_eq!(advice(30.0, None, 3.0), fewer);
    }
}
