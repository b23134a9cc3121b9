//! What holds in a room: the settings of the hub, changed by the first rule for it.

use super::{
    pattern::RoomPattern,
    rule::{Publish, RoomRule},
};
use crate::hub::{history::HistoryLimits, settings::Settings};
use regatta_engine::Bounds;
use std::{num::NonZeroU32, ops::Deref, sync::Arc};

/// What holds for a member of a room, from its join to its end.
#[derive(Debug)]
pub(in super::super) struct RoomTerms {
    /// Whether members may publish.
    pub members_publish: bool,
    /// Whether members are notified when others join or leave.
    pub presence: bool,
    /// Maximum number of members.
    pub members: usize,
    /// Broadcasts of members, per second.
    pub broadcasts: Option<NonZeroU32>,
    /// Limits on the broadcasts that wait for a slow member.
    pub bounds: Bounds,
    /// How much is kept of the messages.
    pub history: HistoryLimits,
}

/// Settings with the terms of all rooms. Nothing is computed or allocated when a member joins.
#[derive(Debug)]
pub(in super::super) struct Plan {
    settings: Settings,
    usual: Arc<RoomTerms>,
    rooms: Vec<(RoomPattern, Arc<RoomTerms>)>,
}

impl Plan {
    /// Computes the terms of all rooms.
    pub fn new(settings: Settings) -> Plan {
        let usual = RoomTerms {
            members_publish: true,
            presence: settings.presence,
            members: settings.limits.members_of_room,
            broadcasts: settings.limits.broadcasts_of_room,
            bounds: settings.backlog.clone(),
            history: settings.limits.history,
        };
        let terms = |rule: &RoomRule| {
            let RoomRule { pattern, publish, presence, slow, max_members, rate, .. } = rule.clone();
            let terms = RoomTerms {
                members_publish: publish == Publish::Members,
                presence: presence.unwrap_or(usual.presence),
                members: max_members.unwrap_or(usual.members),
                broadcasts: rate.or(usual.broadcasts),
                bounds: Bounds {
                    policy: slow.unwrap_or(usual.bounds.policy),
                    ..usual.bounds.clone()
                },
                history: HistoryLimits {
                    messages: rule.history.unwrap_or(usual.history.messages),
                    time: rule.history_ttl.unwrap_or(usual.history.time),
                },
            };
            (pattern, Arc::new(terms))
        };
        let rooms = settings.rooms.iter().map(terms).collect();
        Plan { settings, usual: Arc::new(usual), rooms }
    }

    /// The terms of the room with this name: those of the first rule for it.
    pub fn terms(&self, room: &str) -> &Arc<RoomTerms> {
        let first = self.rooms.iter().find(|(pattern, _)| pattern.matches(room));
        first.map_or(&self.usual, |(_, terms)| terms)
    }

    /// Whether members are notified when others join or leave, in any room.
    pub fn has_presence(&self) -> bool {
        self.usual.presence || self.rooms.iter().any(|(_, terms)| terms.presence)
    }

    /// Whether some rooms have a history.
    pub fn keeps_histories(&self) -> bool {
        let mut rooms = self.rooms.iter().map(|(_, terms)| terms);
        self.usual.history.are_kept() || rooms.any(|terms| terms.history.are_kept())
    }

    /// The terms of a room without a rule.
    pub fn usual(&self) -> &Arc<RoomTerms> {
        &self.usual
    }
}

impl Default for Plan {
    fn default() -> Self {
        Plan::new(Settings::default())
    }
}

impl Deref for Plan {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_engine::Policy;
    use std::time::Duration;

    fn rule(pattern: &str) -> RoomRule {
        RoomRule::new(pattern.parse().unwrap())
    }

    #[test]
    fn the_first_rule_for_a_room_replaces_what_it_names() {
        let mut settings = Settings { presence: true, ..Settings::default() };
        settings.limits.members_of_room = 9;
        settings.limits.broadcasts_of_room = NonZeroU32::new(5);
        settings.rooms = vec![
            RoomRule { presence: Some(false), max_members: Some(2), ..rule("chat:vip") },
            RoomRule { publish: Publish::Api, slow: Some(Policy::Skip), ..rule("chat:*") },
            RoomRule { rate: NonZeroU32::new(1), max_members: Some(70), ..rule("") },
            RoomRule { history: Some(30), ..rule("kept") },
            RoomRule { history_ttl: Some(Duration::from_secs(9)), ..rule("short") },
            RoomRule { history: Some(0), ..rule("none") },
        ];
        settings.limits.history = HistoryLimits { messages: 5, time: Duration::from_secs(60) };
        let plan = Plan::new(settings);
        let of = |room: &str| {
            let RoomTerms { members_publish, presence, members, broadcasts, bounds, .. } =
                &**plan.terms(room);
            (*members_publish, *presence, *members, broadcasts.map(NonZeroU32::get), bounds.policy)
        };
        assert_eq!(of("chat:vip"), (true, false, 2, Some(5), Policy::Close));
        assert_eq!(of("chat:1"), (false, true, 9, Some(5), Policy::Skip));
        assert_eq!(of(""), (true, true, 70, Some(1), Policy::Close));
        assert_eq!(of("other"), (true, true, 9, Some(5), Policy::Close));
        let kept = |room: &str| {
            let HistoryLimits { messages, time } = plan.terms(room).history;
            (messages, time.as_secs())
        };
        assert_eq!(["other", "kept"].map(kept), [(5, 60), (30, 60)]);
        assert_eq!((kept("short"), plan.terms("none").history.are_kept()), ((5, 9), false));
        assert!(Arc::ptr_eq(plan.terms("other"), plan.usual()));
        assert!(Arc::ptr_eq(&plan.terms("chat:1").bounds.memory, &plan.backlog.memory));
    }
}
