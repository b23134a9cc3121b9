//! What a client of a room with a history may receive, and must have received in the end.

use serde_json::Value;
use std::collections::HashMap;

/// All that is known of the messages of a room, from all clients.
#[derive(Debug, Default)]
pub struct Truth {
    /// The payload at each position, as the first client received it.
    pub payloads: HashMap<(String, u64), String>,
    /// How many messages were published.
    pub published: u64,
    /// How many of them the history keeps; `None` if it may also lose some for another reason.
    pub kept: Option<u64>,
}

/// A client, over all of its connections.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// Its last position.
    pub position: Option<(String, u64)>,
    /// The position that it named when it joined, until the hub's first message.
    pub asked: Option<(String, u64)>,
    /// It has just joined.
    pub is_fresh: bool,
    pub messages: usize,
    pub gaps: usize,
    pub recovered: usize,
    /// Its own payloads that it has sent on this connection and not received yet.
    pub own: Vec<String>,
}

impl Judge {
    /// It joins again, with its position if `names`.
    pub fn joins(&mut self, names: bool) {
        self.asked = self.position.clone().filter(|_| names);
        self.position = None;
        self.is_fresh = true;
        self.own.clear();
    }

    /// It receives a text.
    pub fn hears(&mut self, text: &str, truth: &mut Truth) -> Result<(), String> {
        let message: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let offset = message["offset"].as_u64();
        let epoch = message["epoch"].as_str().map(str::to_owned);
        match message["type"].as_str() {
            Some("position") => {
                let position = epoch.zip(offset).ok_or("no position")?;
                if !self.is_fresh {
                    return Err("a position in the middle".to_owned());
                }
                let is_recovered = message["recovered"] == true;
                if is_recovered != self.asked.is_some() {
                    return Err(format!("asked {:?}, got {text}", self.asked));
                }
                if self.asked.as_ref().is_some_and(|asked| *asked != position) {
                    return Err(format!("asked {:?}, recovered from {position:?}", self.asked));
                }
                self.recovered += usize::from(is_recovered);
                self.position = Some(position);
            }
            Some("gap") => self.misses(epoch.zip(offset).ok_or("no position")?, truth)?,
            Some("broadcast") => self.takes(offset, &message["payload"], truth)?,
            Some("broadcastResult") => {
                let payload = message["payload"].to_string();
                if self.own.contains(&payload) && self.gaps == 0 {
                    return Err(format!("the result of {payload} before its own copy"));
                }
            }
            other => return Err(format!("{other:?}")),
        }
        self.is_fresh = false;
        Ok(())
    }

    /// It misses messages up to a position.
    fn misses(&mut self, to: (String, u64), truth: &Truth) -> Result<(), String> {
        let before = if self.is_fresh { self.asked.clone() } else { self.position.clone() };
        let before = before.ok_or("a gap of a client that knows no position")?;
        let is_same = before.0 == to.0;
        if is_same && to.1 <= before.1 {
            return Err(format!("a gap from {before:?} to {to:?}"));
        }
        if let Some(kept) = truth.kept
            && (!is_same || to.1 + kept > truth.published)
        {
            return Err(format!("a gap from {before:?} to {to:?}, although the messages are kept"));
        }
        self.gaps += 1;
        self.position = Some(to);
        Ok(())
    }

    fn takes(
        &mut self,
        offset: Option<u64>,
        payload: &Value,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let offset = offset.ok_or("a message without an offset")?;
        let (epoch, last) = self.position.clone().ok_or("a message before the position")?;
        if offset != last + 1 {
            return Err(format!("message {offset} follows {last}"));
        }
        let payload = payload.to_string();
        self.own.retain(|own| *own != payload);
        let at = (epoch, offset);
        let known = truth.payloads.entry(at.clone()).or_insert_with(|| payload.clone());
        if *known != payload {
            return Err(format!("{payload} at {at:?}, which another client received as {known}"));
        }
        self.messages += 1;
        self.position = Some(at);
        Ok(())
    }
}

/// What the judge makes of these texts for a client that has named the position 3 of `e`, in a room that keeps 5 of 20
/// messages.
fn judged(texts: &[&str]) -> Result<(), String> {
    let mut truth = Truth { published: 20, kept: Some(5), ..Truth::default() };
    truth.payloads.insert(("e".into(), 16), "16".into());
    let mut judge = Judge { position: Some(("e".into(), 3)), ..Judge::default() };
    judge.joins(true);
    judge.own.push("17".into());
    texts.iter().try_for_each(|text| judge.hears(text, &mut truth))
}

const GAP: &str = r#"{"type":"gap","recovered":false,"epoch":"e","offset":15}"#;
const SIXTEEN: &str = r#"{"type":"broadcast","payload":16,"offset":16}"#;
const SEVENTEEN: &str = r#"{"type":"broadcast","payload":17,"offset":17}"#;
const RESULT: &str = r#"{"type":"broadcastResult","payload":17,"listenerCount":1}"#;

#[test]
fn what_is_right_is_accepted() {
    assert_eq!(judged(&[GAP, SIXTEEN, SEVENTEEN, RESULT]), Ok(()));
    let recovered = r#"{"type":"position","epoch":"e","offset":3,"recovered":true}"#;
    assert_eq!(judged(&[recovered, r#"{"type":"broadcast","payload":4,"offset":4}"#]), Ok(()));
}

#[test]
fn every_planted_fault_is_found() {
    let of = |texts: &[&str]| judged(texts).expect_err(texts[texts.len() - 1]);
    assert!(of(&[GAP, SEVENTEEN]).contains("follows 15"), "one is lost");
    assert!(of(&[GAP, SIXTEEN, SIXTEEN]).contains("follows 16"), "one is doubled");
    assert!(of(&[GAP, SEVENTEEN, SIXTEEN]).contains("follows 15"), "the order changes");
    assert!(of(&[GAP, &SIXTEEN.replace(":16,", ":99,")]).contains("another client"));
    assert!(of(&[SIXTEEN]).contains("before the position"), "no gap");
    let later = r#"{"type":"position","epoch":"e","offset":15,"recovered":true}"#;
    assert!(of(&[later]).contains("recovered from"), "a silent gap");
    assert!(of(&[&later.replace(",\"recovered\":true", "")]).contains("asked"));
    assert!(of(&[&GAP.replace("15", "16")]).contains("are kept"), "a needless gap");
    assert!(of(&[&GAP.replace("\"e\"", "\"f\"")]).contains("are kept"), "a needless epoch");
    assert!(of(&[GAP, GAP]).contains("a gap from"), "a gap of nothing");
    let recovered = r#"{"type":"position","epoch":"e","offset":3,"recovered":true}"#;
    assert!(of(&[recovered, RESULT]).contains("before its own copy"));
    assert!(of(&[recovered, recovered]).contains("in the middle"));
}
