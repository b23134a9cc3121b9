//! What a `[[request]]` of a workload file has in any protocol: a weight, and one request or
//! several steps.

use super::draw::Kind;

/// Maximum number of steps in a conversation.
const MOST_STEPS: usize = 1_000;
const GREATEST_WEIGHT: u32 = 1_000_000;

/// Requests that follow each other on one connection.
#[derive(Debug)]
pub(crate) struct Conversation<S> {
    /// How often the conversation is chosen, relative to the others.
    pub weight: u32,
    pub steps: Vec<S>,
}

/// The names that the steps of a conversation have captured so far, and what their values can be.
pub(crate) type Captures = Vec<(String, Kind)>;

/// A request as written in a file.
pub(crate) trait Raw: Sized {
    /// The step that a request is read into.
    type Step;
    /// Whether the request has no keys except weight and steps.
    fn is_empty(&self) -> bool;
    /// The keys that belong in a step.
    const KEYS: &str;
    /// An example of `steps = …`.
    const EXAMPLE: &str;
}

impl<S> Conversation<S> {
    /// Reads a conversation; `step` reads one step. An error starts with its place: `: …` or `,
    /// step 2: …`.
    pub fn read<R: Raw<Step = S>>(
        weight: Option<u32>,
        steps: Option<Vec<R>>,
        one: R,
        mut step: impl FnMut(R, &mut Captures) -> Result<S, String>,
    ) -> Result<Self, String> {
        let weight = weight.unwrap_or(1);
        if !(1..=GREATEST_WEIGHT).contains(&weight) {
            return Err(format!(
                ": `weight` is {weight}; expected 1 to {GREATEST_WEIGHT}, e.g. weight = 3"
            ));
        }
        let mut captures = Vec::new();
        let Some(raw) = steps else {
            let step = step(one, &mut captures).map_err(|why| format!(": {why}"))?;
            return Ok(Conversation { weight, steps: vec![step] });
        };
        if !one.is_empty() {
            let keys = R::KEYS;
            return Err(format!(": it has `steps` and also {keys}; move those into a step"));
        }
        if raw.is_empty() || raw.len() > MOST_STEPS {
            return Err(format!(
                ": it has {} steps; expected 1 to {MOST_STEPS}, e.g. steps = [{}]",
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
