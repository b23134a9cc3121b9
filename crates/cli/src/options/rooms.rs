//! The tables `[[room]]` in the configuration file of the hub: rules for some rooms. They have no form on the command
//! line.

use crate::options::values::{history_time, one_of, policy, policy_name};
use regatta_serve::{Publish, RoomPattern, RoomRule};
use std::{num::NonZeroU32, num::NonZeroUsize, str::FromStr};
use toml::{Spanned, de::DeValue};

/// The key of the tables.
pub const KEY: &str = "room";

/// Maximum number of tables: each member that joins compares the name of its room with them.
const MOST: usize = 1_000;

/// The keys of a table.
const KEYS: &str = "history, history_ttl, match, max_members, presence, publish, rate, slow";

/// The tables of a file, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomTables(Vec<RoomRule>);

/// What is wrong in a file, and at which offset.
pub type WrongAt = (usize, String);

impl RoomTables {
    /// Reads the value of the key. `line`: the number of the line at an offset.
    ///
    /// # Errors
    /// Says what is wrong, e.g. a key that does not exist, or a table for no room, because tables before it are for
    /// its rooms.
    pub fn read(
        value: &Spanned<DeValue<'_>>,
        line: impl Fn(usize) -> usize,
    ) -> Result<RoomTables, WrongAt> {
        let DeValue::Array(tables) = value.get_ref() else {
            let what = value.get_ref().type_str();
            let wrong = format!("{KEY}: expected tables with the head [[{KEY}]], got one {what}");
            return Err((value.span().start, wrong));
        };
        let (mut rules, mut lines) = (Vec::<RoomRule>::new(), Vec::new());
        for table in tables.iter() {
            let (rule, at) = rule(table)?;
            let covers = |earlier: &RoomRule| earlier.pattern.covers(&rule.pattern);
            if let Some(earlier) = rules.iter().position(covers) {
                let wrong = format!(
                    "match: {:?} has no effect, because {:?} in line {} is for all of its rooms, and the first match \
                     applies; change their order or remove one",
                    rule.pattern.to_string(),
                    rules[earlier].pattern.to_string(),
                    lines[earlier],
                );
                return Err((at, wrong));
            }
            if rules.len() == MOST {
                return Err((at, format!("expected at most {MOST} tables [[{KEY}]]")));
            }
            rules.push(rule);
            lines.push(line(at));
        }
        Ok(RoomTables(rules))
    }

    /// The rules.
    pub fn rules(&self) -> &[RoomRule] {
        &self.0
    }

    /// The tables as in a file, each with a comment behind its head.
    pub fn to_toml(&self, comment: &str) -> String {
        let table = |rule: &RoomRule| {
            let RoomRule {
                pattern,
                publish,
                presence,
                slow,
                max_members,
                rate,
                history,
                history_ttl,
            } = rule;
            let pattern = toml::Value::String(pattern.to_string());
            let mut text =
                format!("\n{:<40}  # {comment}\nmatch = {pattern}\n", format!("[[{KEY}]]"));
            if *publish != Publish::default() {
                text += &format!("publish = \"{}\"\n", publish.name());
            }
            if let Some(presence) = presence {
                text += &format!("presence = {presence}\n");
            }
            if let Some(slow) = slow {
                text += &format!("slow = \"{}\"\n", policy_name(*slow));
            }
            if let Some(members) = max_members {
                text += &format!("max_members = {members}\n");
            }
            if let Some(rate) = rate {
                text += &format!("rate = {rate}\n");
            }
            if let Some(history) = history {
                text += &format!("history = {history}\n");
            }
            if let Some(time) = history_ttl {
                text += &format!("history_ttl = \"{}\"\n", humantime::format_duration(*time));
            }
            text
        };
        self.0.iter().map(table).collect()
    }
}

/// Reads a table. Returns it with the offset of its pattern.
fn rule(table: &Spanned<DeValue<'_>>) -> Result<(RoomRule, usize), WrongAt> {
    let at = table.span().start;
    let DeValue::Table(keys) = table.get_ref() else {
        let what = table.get_ref().type_str();
        return Err((at, format!("{KEY}: expected tables with the head [[{KEY}]], got {what}")));
    };
    let pattern = keys.iter().find(|(key, _)| key.get_ref() == "match");
    let Some((_, pattern)) = pattern else {
        return Err((at, format!("a table [[{KEY}]] needs `match`, e.g. match = \"chat:*\"")));
    };
    let at = pattern.span().start;
    let pattern = text("match", pattern.get_ref())
        .and_then(|text| text.parse::<RoomPattern>().map_err(|why| format!("match: {why}")))
        .map_err(|wrong| (at, wrong))?;
    let mut rule = RoomRule::new(pattern);
    for (key, value) in keys.iter() {
        let known = set(&mut rule, key.get_ref(), value.get_ref());
        let known = known.map_err(|wrong| (value.span().start, wrong))?;
        if !known {
            let wrong = format!(
                "there is no key {} in [[{KEY}]]; expected one of: {KEYS}; keys of the hub must be before the first \
                 [[{KEY}]]",
                key.get_ref()
            );
            return Err((key.span().start, wrong));
        }
    }
    Ok((rule, at))
}

/// Sets the value of a key. Returns false if there is no such key.
fn set(rule: &mut RoomRule, key: &str, value: &DeValue<'_>) -> Result<bool, String> {
    let named = |why: String| format!("{key}: {why}");
    match key {
        "match" => {}
        "publish" => {
            let who = one_of(text(key, value)?, &Publish::ALL, Publish::name);
            rule.publish = who.map_err(named)?;
        }
        "presence" => match value {
            DeValue::Boolean(presence) => rule.presence = Some(*presence),
            other => {
                return Err(named(format!("expected true or false, got {}", other.type_str())));
            }
        },
        "slow" => rule.slow = Some(policy(text(key, value)?).map_err(named)?),
        "max_members" => {
            rule.max_members = Some(number::<NonZeroUsize>(value).map_err(named)?.get());
        }
        "rate" => rule.rate = Some(number::<NonZeroU32>(value).map_err(named)?),
        "history" => match value {
            DeValue::Integer(number) => {
                let wrong = |_| named(format!("expected a number from 0 on, got {number}"));
                rule.history = Some(number.to_string().parse().map_err(wrong)?);
            }
            other => {
                return Err(named(format!(
                    "expected a number from 0 on, got {}",
                    other.type_str()
                )));
            }
        },
        "history_ttl" => {
            rule.history_ttl = Some(history_time(text(key, value)?).map_err(named)?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn text<'a>(key: &str, value: &'a DeValue<'_>) -> Result<&'a str, String> {
    match value {
        DeValue::String(text) => Ok(text),
        other => Err(format!("{key}: expected a string, got {}", other.type_str())),
    }
}

/// A number from 1 on.
fn number<N: FromStr>(value: &DeValue<'_>) -> Result<N, String> {
    match value {
        DeValue::Integer(number) => number
            .to_string()
            .parse()
            .map_err(|_| format!("expected a number from 1 on, got {number}")),
        other => Err(format!("expected a number from 1 on, got {}", other.type_str())),
    }
}
