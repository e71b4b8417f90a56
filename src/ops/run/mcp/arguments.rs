//! Checks the arguments of a call against the tool's schema, and says what is wrong as one would write it by hand.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::schemas::UNUSED;
use crate::mcp::Object;
use crate::model::{first_line, list, printable};

/// Most problems that are listed.
const LISTED: usize = 20;

/// The arguments, if they fit the schema. The error is for the model, which can then correct them.
pub(super) fn checked(schema: &Value, mut given: Object) -> Result<Object, String> {
    let mut problems = Vec::new();
    check_fields(schema, &mut given, "", &mut problems);
    if problems.is_empty() {
        return Ok(given);
    }
    let more = problems.len().saturating_sub(LISTED);
    problems.truncate(LISTED);
    if more > 0 {
        problems.push(format!("{more} more"));
    }
    Err(problems.join("\n"))
}

fn check(schema: &Value, given: &mut Value, path: &str, problems: &mut Vec<String>) {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(one) => one.as_str().into_iter().collect(),
        None => vec!["object"],
    };
    let found = type_of(given);
    if !wanted.contains(&found) {
        let wanted: Vec<String> = wanted.into_iter().map(article).collect();
        problems.push(format!("`{path}` must be {}, not {}", wanted.join(" or "), article(found)));
        return;
    }
    match given {
        Value::Object(fields) => check_fields(schema, fields, path, problems),
        Value::Array(items) => {
            let count = items.len();
            if let Some(range) = range(schema, "minItems", "maxItems").filter(|range| !contains(range, count)) {
                problems.push(format!("`{path}` must have {} to {} items, not {count}", range.start(), range.end()));
                return;
            }
            let item = schema.get("items").unwrap_or(&Value::Null);
            (0..).zip(items).for_each(|(index, given)| check(item, given, &format!("{path}[{index}]"), problems));
        }
        Value::Number(number) => {
            if let Some(range) = range(schema, "minimum", "maximum")
                && !number.as_i64().is_some_and(|number| range.contains(&number))
            {
                let unit = if path.ends_with("Sec") { " seconds" } else { "" };
                problems.push(format!("`{path}` must be between {} and {}{unit}", range.start(), range.end()));
            }
        }
        _ => {}
    }
}

/// Also removes optional arguments that are null: some clients send all of them.
fn check_fields(schema: &Value, fields: &mut Object, path: &str, problems: &mut Vec<String>) {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
    let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    fields.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
    let missing = required.iter().filter(|name| !fields.contains_key(**name));
    problems.extend(missing.map(|name| format!("`{}` is missing", inner(name))));
    for (name, value) in fields {
        match known.get(name) {
            Some(schema) => check(schema, value, &inner(name), problems),
            None => {
                let known = known.keys().filter(|name| !UNUSED.contains(&name.as_str()));
                let known = list(known.map(|name| format!("`{name}`")));
                problems.push(format!(
                    "there is no argument `{}`; there are {known}",
                    printable(&first_line(&inner(name), 80))
                ));
            }
        }
    }
}

fn range(schema: &Value, from: &str, to: &str) -> Option<RangeInclusive<i64>> {
    Some(schema.get(from)?.as_i64()?..=schema.get(to)?.as_i64()?)
}

fn contains(range: &RangeInclusive<i64>, count: usize) -> bool {
    i64::try_from(count).is_ok_and(|count| range.contains(&count))
}

/// The type of a value, by its name in schemas.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        _ if name.starts_with(['a', 'i', 'o']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::schemas;
    use super::*;

    fn problems(tool: &str, given: Value) -> String {
        let Value::Object(given) = given else { panic!("{given}") };
        checked(schemas::input(tool).expect("a tool"), given).err().unwrap_or_default()
    }

    #[test]
    fn every_problem_is_named_where_it_is() {
        let wrong = json!({"roleId": 1, "timeoutSec": 0, "shell": "sh", "cwd": null, "engine": ["x"]});
        let said =
            problems("start_squad_members", json!({"members": [{"roleId": "a", "task": "b"}, wrong], "wait": 1}));
        let known = "`roleId`, `task`, `cwd`, `chatId`, `engine` and `timeoutSec`";
        assert_eq!(
            said,
            format!(
                "`members[1].task` is missing\n`members[1].roleId` must be a string, not an integer\n\
                 `members[1].timeoutSec` must be between 1 and 86400 seconds\n\
                 there is no argument `members[1].shell`; there are {known}\n\
                 `members[1].engine` must be a string, not an array\n`wait` must be a boolean, not an integer"
            )
        );
        assert_eq!(problems("start_squad_members", json!({"members": []})), "`members` must have 1 to 64 items, not 0");
        let said = problems("start_squad_members", json!({"members": "ada"}));
        assert_eq!(said, "`members` must be an array, not a string");
        let many = json!({"members": vec![json!(null); 30]});
        let said = problems("start_squad_members", many);
        assert!(said.starts_with("`members[0]` must be an object, not null\n"), "{said}");
        assert!(said.ends_with("\n10 more"), "{said}");
    }

    #[test]
    fn numbers_are_integers_in_their_range() {
        for (number, expected) in [
            (json!(50), ""),
            (json!(51), "`waitSec` must be between 0 and 50 seconds"),
            (json!(-1), "`waitSec` must be between 0 and 50 seconds"),
            (json!(u64::MAX), "`waitSec` must be between 0 and 50 seconds"),
            (json!(1.5), "`waitSec` must be an integer, not a number"),
            (json!("1"), "`waitSec` must be an integer, not a string"),
            (json!(null), ""),
        ] {
            assert_eq!(problems("get_run", json!({"squadId": "x", "waitSec": number})), expected);
        }
        assert_eq!(problems("get_run", json!({"squadId": null})), "`squadId` must be a string, not null");
    }
}
