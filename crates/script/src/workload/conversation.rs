//! What the `[[request]]` of a workload file have in common, whatever their protocol: a weight, and
//! one request or several steps.

use super::draw::Kind;

/// Most steps of a conversation.
const MOST_STEPS: usize = 1_000;
const GREATEST_WEIGHT: u32 = 1_000_000;

/// Requests that follow each other on one connection.
#[derive(Debug)]
pub(crate) struct Conversation<S> {
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    pub steps: Vec<S>,
}

/// What the steps of a conversation have captured so far: names, and what their values can be.
pub(crate) type Captures = Vec<(String, Kind)>;

/// A request as it stands in a file.
pub(crate) trait Raw: Sized {
    /// What was said of a request: its step.
    type Step;
    /// Whether nothing is said but weight and steps.
    fn is_empty(&self) -> bool;
    /// The keys that belong into a step.
    const KEYS: &str;
    /// `steps = …`, as an example.
    const EXAMPLE: &str;
}

impl<S> Conversation<S> {
    /// Puts a conversation together; `step` reads one. What is wrong begins with its place: `: …` or
    /// `, step 2: …`.
    pub fn read<R: Raw<Step = S>>(
        weight: Option<u32>,
        steps: Option<Vec<R>>,
        one: R,
        mut step: impl FnMut(R, &mut Captures) -> Result<S, String>,
    ) -> Result<Self, String> {
        let weight = weight.unwrap_or(1);
        if !(1..=GREATEST_WEIGHT).contains(&weight) {
            return Err(format!(
                ": `weight` is {weight}; expected 1 to {GREATEST_WEIGHT}, as weight = 3"
            ));
        }
        let mut captures = Vec::new();
        let Some(raw) = steps else {
            let step = step(one, &mut captures).map_err(|why| format!(": {why}"))?;
            return Ok(Conversation { weight, steps: vec![step] });
        };
        if !one.is_empty() {
            let keys = R::KEYS;
            return Err(format!(": it has `steps`, and {keys} beside them; put those into a step"));
        }
        if raw.is_empty() || raw.len() > MOST_STEPS {
            return Err(format!(
                ": it has {} steps; expected 1 to {MOST_STEPS}, as steps = [{}]",
                raw.len(),
                R::EXAMPLE
            ));
        }
        let mut steps = Vec::new();
        for (i, one) in raw.into_iter().enumerate() {
            let place = |why| format!(", step {}: {why}", i + 1);
            steps.push(step(one, &mut captures).map_err(place)?);
        }
        Ok(Conversation { weight, steps })
    }
}
