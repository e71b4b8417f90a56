//! What of this machine an order may have: variables of the worker's environment, and the command that makes its clone
//! ready. This machine's own configuration says which.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::engine::remote::frames::Order;
use crate::env::Env;
use crate::model::{IntoMap, command_line, list};
use crate::ops::own_settings;
use crate::policy::Redactor;
use crate::settings::WorkerSettings;

/// The variables that an order was given, which nobody but its engine learns.
#[derive(Default)]
pub(super) struct Grant {
    values: BTreeMap<String, String>,
    /// Names of variables that it was not given.
    withheld: Vec<String>,
    redactors: Vec<Redactor>,
}

impl Grant {
    /// The error says everything that the order may not have, or that is not there.
    pub(super) fn of(env: &Env, order: &Order) -> Result<Self, String> {
        Self::read(&own_settings(env).worker, &env.variables, order)
    }

    fn read(allowed: &WorkerSettings, variables: &BTreeMap<String, String>, order: &Order) -> Result<Self, String> {
        let mut lacks = Vec::new();
        let (may, may_not): (Vec<&String>, Vec<&String>) =
            order.secrets.iter().partition(|name| allowed.secrets.contains(name));
        let quoted = |names: &[&String]| list(names.iter().map(|name| format!("`{name}`")));
        if !may_not.is_empty() {
            let names = quoted(&may_not);
            lacks.push(format!("its own configuration does not let orders have {names}, which `worker.secrets` would"));
        }
        let value = |name: &&String| variables.get(*name).filter(|value| !value.is_empty());
        let missing: Vec<&String> = may.iter().copied().filter(|name| value(name).is_none()).collect();
        if !missing.is_empty() {
            lacks.push(format!("its environment has no {}", quoted(&missing)));
        }
        let line = command_line(&order.setup);
        if !order.setup.is_empty() && !allowed.setup.contains(&line) {
            lacks.push(format!("its own configuration does not let orders run `{line}`, which `worker.setup` would"));
        }
        if !lacks.is_empty() {
            return Err(lacks.join("; "));
        }
        let values = may.iter().filter_map(|name| Some(((*name).clone(), value(name)?.clone()))).into_map();
        let withheld = allowed.secrets.iter().filter(|name| !values.contains_key(*name)).cloned().collect();
        let redactors = values.values().map(|value| Redactor::of_value(value)).collect();
        Ok(Self { values, withheld, redactors })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.values.keys().cloned().collect()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().map(String::as_str)
    }

    /// Takes what the order was not given out of the variables of its engine.
    pub(super) fn withhold(&self, variables: &mut BTreeMap<String, String>) {
        variables.retain(|name, _| !self.withheld.contains(name));
    }

    /// Takes the values out of what is told.
    pub(super) fn hide(&self, value: &mut Value) {
        self.redactors.iter().for_each(|redactor| redactor.value(value, &mut Vec::new()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(secrets: &[&str], setup: &[&str]) -> Order {
        let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let text = json!({
            "protocol": 1, "version": "1", "id": "x", "client": "c", "after": 0, "repository": "r", "format": "sha1",
            "branch": null, "head": null, "base": "b", "name": "n", "inner": "", "run": "r", "agent": "a", "engine": "e",
            "sandbox": "full", "requires_sandbox": false, "script": null, "lease": 1,
            "secrets": of(secrets), "setup": of(setup),
        });
        serde_json::from_value(text).expect("an order")
    }

    /// What the order names × what this machine allows × what is there.
    #[test]
    fn an_order_has_what_both_sides_name() {
        let allowed = WorkerSettings {
            secrets: ["NPM_TOKEN", "OTHER", "GONE"].map(str::to_owned).into(),
            setup: vec!["npm ci".to_owned(), "make 'a b'".to_owned()],
        };
        let variables = [("NPM_TOKEN", "tok\"en"), ("OTHER", "other-value"), ("AWS", "aws-value"), ("PATH", "/bin")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().into_map();
        for (secrets, setup, expected) in [
            (&[][..], &[][..], Ok(vec!["AWS", "PATH"])),
            (&["NPM_TOKEN"], &["npm", "ci"], Ok(vec!["AWS", "NPM_TOKEN", "PATH"])),
            (&["NPM_TOKEN", "OTHER"], &["make", "a b"], Ok(vec!["AWS", "NPM_TOKEN", "OTHER", "PATH"])),
            (&["AWS"], &[], Err("does not let orders have `AWS`")),
            (&["GONE"], &[], Err("its environment has no `GONE`")),
            (&[], &["npm", "ci", "--force"], Err("does not let orders run `npm ci --force`")),
            (&[], &["npm ci"], Err("does not let orders run")),
            (&[], &["make", "a", "b"], Err("does not let orders run `make a b`")),
        ] {
            let grant = Grant::read(&allowed, &variables, &order(secrets, setup));
            let left = grant.map(|grant| {
                let mut left = variables.clone();
                grant.withhold(&mut left);
                left.into_keys().collect::<Vec<_>>()
            });
            match (&left, &expected) {
                (Ok(left), Ok(expected)) => assert_eq!(left, expected, "{secrets:?} {setup:?}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{secrets:?} {setup:?}: {why}"),
                _ => panic!("{secrets:?} {setup:?}: {left:?}"),
            }
        }
        let all = Grant::read(&allowed, &variables, &order(&["AWS", "GONE"], &["x"])).err().expect("it is refused");
        assert!(all.contains("`AWS`") && all.contains("`GONE`") && all.contains("`x`"), "{all}");
    }

    #[test]
    fn values_are_in_nothing_that_is_told() {
        let allowed = WorkerSettings { secrets: vec!["PIN".to_owned()], setup: Vec::new() };
        let variables = BTreeMap::from([("PIN".to_owned(), "a\"b".to_owned())]);
        let grant = Grant::read(&allowed, &variables, &order(&["PIN"], &[])).expect("it is there");
        let inner = json!({ "text": "a\"b" }).to_string();
        let mut told = json!({ "x": ["say a\"b", 7], "a\"b": inner });
        grant.hide(&mut told);
        let told = told.to_string();
        assert!(!told.contains("a\\\"b") && !told.contains("a\\\\\\\"b") && told.contains("[redacted:"), "{told}");
    }
}
