//! Permissions: a tool's own setting, and the operator's rules.

mod condition;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::condition::Match;
use crate::pattern::Pattern;
use crate::printable;

/// Maximum length of a reason in characters.
const REASON: usize = 2000;

/// Whether a call runs at once, after approval, or never. Ordered from lax to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The call runs at once.
    #[default]
    Auto,
    /// The call runs after a person has approved it.
    Confirm,
    /// The call never runs.
    Deny,
}

/// A call, with the properties that permission rules can match.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tool's name in the catalogue.
    pub tool: &'a str,
    /// The tool's name for models. A rule matches if its pattern matches either name.
    pub model_name: &'a str,
    /// The id of the tool's source.
    pub source: &'a str,
    /// The tool sets that give the caller the tool.
    pub sets: &'a [Arc<str>],
    /// The name of the agent that made the call, if any.
    pub agent: Option<&'a str>,
    /// The arguments, after validation.
    pub arguments: &'a Value,
}

/// A permission rule of the operator. It applies to a call if all of its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, crate::Setters)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// Condition: the tool's name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Pattern>,
    /// Condition: the id of the tool's source matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Pattern>,
    /// Condition: the name of one of the caller's tool sets that contain the tool matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Pattern>,
    /// Condition: the name of the calling agent matches. A call without an agent never matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Pattern>,
    /// Condition: each named argument is present, and its value matches. Values other than strings are compared as canonical JSON, so `1`
    /// also matches 1.0 and 1e0.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    #[setter(skip)]
    pub when: std::collections::BTreeMap<String, Pattern>,
    /// The permission of calls to which the rule applies.
    pub permission: Permission,
    /// The reason that Helve shows to the person who decides. By default, a description of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl PermissionRule {
    /// Adds a condition: the argument must be present, and its value must match.
    #[must_use]
    pub fn when(mut self, argument: impl Into<String>, pattern: impl Into<Pattern>) -> Self {
        self.when.insert(argument.into(), pattern.into());
        self
    }

    /// Creates a rule for tools by name.
    #[must_use]
    pub fn for_tool(tool: impl Into<Pattern>, permission: Permission) -> Self {
        Self { tool: Some(tool.into()), permission, ..Self::default() }
    }

    /// Returns whether the rule applies to a call.
    fn matches(&self, subject: &Subject<'_>) -> Match {
        let fits = |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(text));
        let applies = (fits(&self.tool, subject.tool) || fits(&self.tool, subject.model_name))
            && fits(&self.source, subject.source)
            && self.set.as_ref().is_none_or(|set| subject.sets.iter().any(|name| set.matches(name)))
            && self.agent.as_ref().is_none_or(|agent| subject.agent.is_some_and(|name| agent.matches(name)));
        if !applies {
            return Match::No;
        }
        let met =
            |(key, pattern): (&String, &Pattern)| subject.arguments.get(key).map_or(Match::No, |value| condition::meets(pattern, value));
        self.when.iter().map(met).min().unwrap_or(Match::Yes)
    }
}

/// The permission of a call, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The permission of the call.
    pub permission: Permission,
    /// The reason that Helve shows to the person who decides.
    pub reason: String,
}

impl Ruling {
    /// Requires approval for the reason `because`, if there is one and the call is not denied.
    #[must_use]
    pub fn held(self, because: Option<&str>) -> Self {
        match because {
            Some(because) if self.permission <= Permission::Confirm => Self { permission: Permission::Confirm, reason: shown(because) },
            _ => self,
        }
    }
}

/// The operator's rules. The strictest rule that applies replaces the tool's own permission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<PermissionRule>,
    only_tightens: bool,
    approval_time: Option<Duration>,
}

impl Policy {
    /// Creates a policy with these rules. Their order does not matter.
    #[must_use]
    pub fn new(rules: Vec<PermissionRule>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Adds a rule to the policy.
    #[must_use]
    pub fn with_rule(mut self, rule: PermissionRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets how long approval requests stay valid. By default they never expire.
    #[must_use]
    pub fn with_approval_time(mut self, time: Option<Duration>) -> Self {
        self.approval_time = time;
        self
    }

    /// Returns when a request created at `now` expires; `None` if never.
    #[must_use]
    pub fn expires(&self, now: Timestamp) -> Option<Timestamp> {
        self.approval_time
            .map(|time| jiff::SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok()).unwrap_or(Timestamp::MAX))
    }

    /// Lets the rules only tighten permissions, never loosen them, as for a folder that is not trusted.
    #[must_use]
    pub fn only_tightening(mut self) -> Self {
        self.only_tightens = true;
        self
    }

    /// Decides about a call to a tool whose own permission is `own`. If Helve cannot tell whether a rule applies, the rule counts only if
    /// it is stricter than the result without it.
    #[must_use]
    pub fn decide(&self, own: Permission, subject: &Subject<'_>) -> Ruling {
        let (mut certain, mut unclear): (Option<&PermissionRule>, Option<&PermissionRule>) = (None, None);
        for rule in &self.rules {
            let strictest = match rule.matches(subject) {
                Match::No => continue,
                Match::Unclear => &mut unclear,
                Match::Yes => &mut certain,
            };
            if strictest.is_none_or(|other| rule.permission >= other.permission) {
                *strictest = Some(rule);
            }
        }
        let certain = certain.filter(|rule| !self.only_tightens || rule.permission > own);
        let holds = certain.map_or(own, |rule| rule.permission);
        match unclear.filter(|rule| rule.permission > holds).or(certain) {
            Some(rule) => Ruling { permission: rule.permission, reason: reason(rule) },
            // Most calls end here. Nothing shows the reason of a call that runs at once, so it is not formatted.
            None if own == Permission::Auto => Ruling { permission: own, reason: String::new() },
            None => Ruling { permission: own, reason: format!("the tool requires `{own}`") },
        }
    }
}

fn shown(because: &str) -> String {
    printable::shorten(&printable::escape_line(because), REASON)
}

/// Returns the reason of a rule on one line. A rule may come from an untrusted file, and a second line could imitate Helve's own output.
fn reason(rule: &PermissionRule) -> String {
    if let Some(because) = &rule.because {
        return shown(because);
    }
    let mut parts = Vec::new();
    for (word, pattern) in [("tool", &rule.tool), ("source", &rule.source), ("set", &rule.set), ("agent", &rule.agent)] {
        if let Some(pattern) = pattern {
            parts.push(format!("{word} `{pattern}`"));
        }
    }
    parts.extend(rule.when.iter().map(|(key, pattern)| format!("{key} `{pattern}`")));
    let about = if parts.is_empty() { "every tool".to_owned() } else { parts.join(", ") };
    let about = printable::shorten(&printable::escape_line(&about), REASON);
    format!("a rule for {about} says `{}`", rule.permission)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> PermissionRule {
        serde_json::from_value(value).expect("a rule")
    }

    fn decide(rules: Vec<Value>, own: Permission, arguments: &Value) -> Permission {
        let sets = ["shell".into()];
        let subject =
            Subject { tool: "run_command", model_name: "run_command", source: "builtin", sets: &sets, agent: Some("coder"), arguments };
        Policy::new(rules.into_iter().map(rule).collect()).decide(own, &subject).permission
    }

    #[test]
    fn a_matching_rule_overrides_the_tool_and_the_strictest_wins() {
        let git = json!({"tool": "run_command", "when": {"command": "git *"}, "permission": "auto"});
        let status = json!({"command": "git status"});
        assert_eq!(decide(vec![git.clone()], Permission::Confirm, &status), Permission::Auto);
        assert_eq!(decide(vec![git.clone()], Permission::Confirm, &json!({"command": "rm -r x"})), Permission::Confirm);
        assert_eq!(decide(vec![git.clone()], Permission::Confirm, &json!({})), Permission::Confirm);
        let all = json!({"tool": "run_*", "permission": "confirm"});
        assert_eq!(decide(vec![git.clone(), all], Permission::Auto, &status), Permission::Confirm);
        let never = json!({"source": "built*", "set": "shell", "agent": "coder", "permission": "deny"});
        assert_eq!(decide(vec![git, never], Permission::Auto, &status), Permission::Deny);
    }

    #[test]
    fn a_tool_that_is_held_is_asked_for_unless_it_is_denied() {
        let ruling = |permission| Ruling { permission, reason: "a rule".to_owned() };
        for (before, after) in [
            (Permission::Auto, (Permission::Confirm, "new")),
            (Permission::Confirm, (Permission::Confirm, "new")),
            (Permission::Deny, (Permission::Deny, "a rule")),
        ] {
            let held = ruling(before).held(Some("new"));
            assert_eq!((held.permission, held.reason.as_str()), after);
            assert_eq!(ruling(before).held(None), ruling(before));
        }
    }

    #[test]
    fn conditions_that_do_not_hold_leave_the_tools_wish() {
        for other in [json!({"agent": "writer"}), json!({"set": "web"}), json!({"source": "mcp:*"}), json!({"tool": "run"})] {
            let mut other = other;
            other["permission"] = json!("deny");
            assert_eq!(decide(vec![other], Permission::Auto, &json!({})), Permission::Auto);
        }
    }

    #[test]
    fn rules_that_only_tighten_never_loosen() {
        let policy = Policy::new(vec![rule(json!({"tool": "a", "permission": "auto"})), rule(json!({"tool": "b", "permission": "deny"}))]);
        let decide = |policy: &Policy, tool| {
            let subject = Subject { tool, model_name: tool, source: "s", sets: &[], agent: None, arguments: &Value::Null };
            policy.decide(Permission::Confirm, &subject).permission
        };
        assert_eq!((decide(&policy, "a"), decide(&policy, "b")), (Permission::Auto, Permission::Deny));
        let wary = policy.only_tightening();
        assert_eq!((decide(&wary, "a"), decide(&wary, "b")), (Permission::Confirm, Permission::Deny));
    }

    #[test]
    fn arguments_that_are_no_strings_are_matched_as_json() {
        let many = json!({"when": {"count": "1?"}, "permission": "deny"});
        assert_eq!(decide(vec![many.clone()], Permission::Auto, &json!({"count": 12})), Permission::Deny);
        assert_eq!(decide(vec![many], Permission::Auto, &json!({"count": 2})), Permission::Auto);
    }

    #[test]
    fn a_rule_for_a_number_holds_in_every_spelling() {
        let deny = json!({"when": {"count": "1"}, "permission": "deny"});
        for spelling in ["1", "1.0", "1e0", "100e-2", "\"1\"", "\"1.0\""] {
            let arguments: Value = serde_json::from_str(&format!("{{\"count\": {spelling}}}")).expect("JSON");
            assert_eq!(decide(vec![deny.clone()], Permission::Auto, &arguments), Permission::Deny, "{spelling}");
        }
    }

    #[test]
    fn a_rule_that_may_or_may_not_hold_only_tightens() {
        let rule = |permission: &str| json!({"when": {"count": "1.*"}, "permission": permission});
        let unclear = json!({"count": 1.0});
        for (own, permission, wanted) in [
            (Permission::Auto, "deny", Permission::Deny),
            (Permission::Confirm, "auto", Permission::Confirm),
            (Permission::Deny, "confirm", Permission::Deny),
        ] {
            assert_eq!(decide(vec![rule(permission)], own, &unclear), wanted);
        }
        let other = json!({"permission": "auto"});
        assert_eq!(decide(vec![rule("confirm"), other], Permission::Deny, &unclear), Permission::Confirm, "stricter than the other rule");
    }

    #[test]
    fn a_rule_must_say_what_it_permits() {
        assert!(serde_json::from_value::<PermissionRule>(json!({"tool": "x"})).is_err(), "or a typo would loosen");
    }

    #[test]
    fn the_reason_names_the_rule() {
        let rule = rule(json!({"tool": "a*", "when": {"x": "y"}, "permission": "confirm"}));
        assert_eq!(reason(&rule), "a rule for tool `a*`, x `y` says `confirm`");
        assert_eq!(reason(&PermissionRule::default()), "a rule for every tool says `auto`");
    }

    #[test]
    fn a_reason_is_one_line_whatever_the_rule_says() {
        let forged = "ask ada\n\u{1b}[2K\rhint: say yes\u{202e}\u{9b}1A";
        for rule in [
            json!({"tool": "x", "permission": "confirm", "because": forged}),
            json!({"tool": forged, "permission": "confirm"}),
            json!({"when": {forged: "*"}, "permission": "confirm"}),
        ] {
            let reason = reason(&self::rule(rule));
            assert!(
                reason.contains(r"ask ada\n\u{1b}[2K\rhint: say yes\u{202e}\u{9b}1A") && !reason.contains(printable::is_deceptive),
                "{reason}"
            );
        }
        let long = reason(&rule(json!({"permission": "deny", "because": "x".repeat(1 << 20)})));
        assert!(long.len() < 2 * REASON && long.contains("left out"), "{long}");
    }
}
