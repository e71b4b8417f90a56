//! A team of 20 agents with 50 routing rules, and 1,000 messages to it. Every run makes the same ones.

/// What a part of the product is called, where it is, and what it is made of.
const PARTS: [[&str; 4]; 10] = [
    ["billing", "src/billing/invoice.rs", "invoices", "the tax rounding"],
    ["search", "src/search/index.ts", "search results", "the ranking of hits"],
    ["login", "server/auth/session.go", "sessions", "the password reset"],
    ["reports", "reports/monthly.sql", "monthly reports", "the export to CSV"],
    ["editor", "ui/editor/Toolbar.tsx", "toolbar buttons", "undo and redo"],
    ["sync", "mobile/sync/Queue.kt", "offline changes", "the conflict dialog"],
    ["maps", "web/maps/tiles.js", "map tiles", "the zoom level"],
    ["notifications", "jobs/notify/digest.py", "e-mail digests", "quiet hours"],
    ["imports", "tools/import/csv_reader.cs", "imported rows", "the column mapping"],
    ["payments", "api/payments/refund.rs", "refunds", "the webhook signature"],
];

const CRAFTS: [[&str; 3]; 10] = [
    ["Backend Developer", "REST endpoints, database schemas, caching", "API, server, database"],
    ["Frontend Developer", "React components, CSS, accessibility", "UI, components, styling"],
    ["Test Engineer", "unit tests, end-to-end tests, fixtures", "tests, coverage, quality"],
    ["Technical Writer", "guides, README, API reference", "documentation, tutorials"],
    ["DevOps Engineer", "GitHub Actions, Docker, Terraform", "CI, releases, deployment"],
    ["Security Engineer", "threat models, dependency audits, secrets", "security, permissions"],
    ["Data Engineer", "pipelines, SQL, dashboards", "ETL, analytics, metrics"],
    ["Mobile Developer", "Android, iOS, push notifications", "app screens, gestures"],
    ["Lead", "architecture, planning, code review", "scope, priorities, design reviews"],
    ["Performance Engineer", "profiling, memory, benchmarks", "latency, throughput"],
];

const NAMES: [&str; 20] = [
    "Ada", "Bruno", "Celia", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Liam", "Mina",
    "Nils", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tara",
];

/// The team's files, from its repository's root: ten agents who each develop a part, and ten who each do one thing for
/// all of them.
pub(crate) fn team() -> Vec<(String, String)> {
    let mut roster = "# Team\n\n## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n".to_owned();
    let mut routing = "# Routing\n\n| Work Type | Route To | Examples |\n|---|---|---|\n".to_owned();
    let mut files = Vec::new();
    let mut member = |name: &str, role: &str, expertise: &str, rows: &[[&str; 2]], owned: &str| {
        let charter = format!(".squad/agents/{}/charter.md", name.to_lowercase());
        roster.push_str(&format!("| {name} | {role} | `{charter}` | ✅ Active |\n"));
        for [signal, examples] in rows {
            routing.push_str(&format!("| {signal} | {name} | {examples} |\n"));
        }
        let text = format!(
            "# {name} — {role}\n\n## Identity\n\n- **Name:** {name}\n- **Role:** {role}\n- **Expertise:** \
             {expertise}\n- **Style:** Direct, says what does not hold.\n\n## What I Own\n\n{owned}\n\n## How I Work\n\n- \
             Read the decisions before starting; write down what the next one needs to know\n- Small changes, each \
             with its reason\n\n## Boundaries\n\n**I handle:** {expertise}.\n\n**I don't handle:** pricing, hiring, \
             parts of others.\n\n**When I'm unsure:** I say so and ask who knows.\n\n## Voice\n\nLikes it boring. \
             Thinks that most things deserve better names.\n"
        );
        files.push((charter, text));
    };
    let (of_parts, of_crafts) = NAMES.split_at(PARTS.len());
    for (name, [part, path, things, detail]) in of_parts.iter().zip(PARTS) {
        let owned = format!("- {things} and {detail}\n- `{path}`\n- How {part} behaves on a slow network");
        let rows = [[part, things], [&format!("`{path}`"), "its neighbours"], [detail, "reports of customers"]];
        member(name, &format!("{part} developer"), &format!("{part}, {things}"), &rows, &owned);
    }
    for (name, [role, expertise, signals]) in of_crafts.iter().zip(CRAFTS) {
        member(name, role, expertise, &[[signals, expertise], [role, signals]], &format!("- {signals}, in every part"));
    }
    files.push((".squad/team.md".to_owned(), roster));
    files.push((".squad/routing.md".to_owned(), routing));
    files
}

/// Messages as people write them: orders, reports, questions, lists, stories, pasted logs, other languages.
pub(crate) fn messages() -> Vec<String> {
    (0..1_000).map(|number| message(number, &PARTS[(number / FORMS.len()) % PARTS.len()])).collect()
}

fn message(number: usize, [part, path, things, detail]: &[&str; 4]) -> String {
    let name = NAMES[number % NAMES.len()];
    let text = FORMS[number % FORMS.len()]
        .replace("{part}", part)
        .replace("{path}", path)
        .replace("{things}", things)
        .replace("{detail}", detail)
        .replace("{name}", name)
        .replace("{number}", &(100 + number * 37 % 900).to_string());
    match number / 400 {
        0 => text,
        1 => format!("{text} It began with build {number}."),
        _ => format!("For the {} release: {text}", ["spring", "autumn", "beta"][number % 3]),
    }
}

const FORMS: [&str; 40] = [
    "Fix {detail} in {part}.",
    "{things} are empty after the upgrade to {number}.",
    "Add an endpoint that lists {things} by date, with unit tests.",
    "Write a guide for {part}: how it is set up, what {detail} means, what to do when it fails.",
    "Why is `{path}` read twice at start-up?",
    "The CI job for {part} times out after {number} seconds on Windows.",
    "Hello!",
    "{name}, please look at {detail}.",
    "@{name} the {things} of customer {number} are wrong",
    "Refactor {path} so that {things} are loaded lazily.",
    "Review the pull request #{number} that changes {detail}.",
    "Who handles {part}?",
    "Should we move {part} to its own service, or keep it where it is?",
    "Audit the dependencies of {part} for known vulnerabilities, don't touch the lock file.",
    "The dialog for {detail} can't be used with a keyboard and has no accessible name.",
    "El formulario de {part} no guarda los datos, ¿puedes arreglarlo?",
    "Die Tests für {part} schlagen seit gestern fehl, bitte reparieren.",
    "Implement {detail}, cover it with tests, and document it in the README.",
    "Team, everyone looks at {things} once and says what is missing.",
    "Make it faster.",
    "Opening {things} takes {number} ms; profile it and bring the p95 below 50 ms.",
    "panic in {part}:\n\n```\nthread 'main' panicked at {path}:{number}:17:\nindex out of bounds: the len is 3\n   0: \
     core::panicking::panic_fmt\n   1: app::{part}::load\n```\n\nIt happens when {things} are empty.",
    "Customers report that {detail} is off by one since last week. We looked at the logs of the workers and found \
     nothing unusual, the queue was short all the time and no deployment happened on that day. Could you find out what \
     changed in {part}, write a regression test for it and tell me which customers are affected?",
    "What's the status of {part}?",
    "Rename `{things}` to something that says what they are.",
    "{part}: migrate the schema, keep the old column until {number} clients are updated",
    "I get `TypeError: undefined is not a function` from {path} line {number} whenever I open the page with an ad \
     blocker on, in Firefox only.",
    "Bump the Docker base image of {part} and pin its digest.",
    "Please draw the states of {things} and propose a simpler model for {detail}.",
    "Dark mode: the icons of {part} are invisible on the blue background.",
    "Create a dashboard with the number of {things} per day and alert when it drops by more than {number} %.",
    "2026-03-01T10:00:00Z ERROR {part}: connection reset\n2026-03-01T10:00:02Z WARN {part}: retry {number}\n2026-03-01T\
     10:00:09Z ERROR {part}: gave up\n\nWhat does this mean for {things}?",
    "{detail}ロジックを修正してください、{part}のテストも追加",
    "Pls fixx the {part} pagge, the buton dose nothign",
    "Plan the next sprint around {part}: {things} first, then {detail}.",
    "Add retries with exponential back-off to {path} and log every attempt at debug level.",
    "Translate the texts of {part} to French and German.",
    "Release {part} 2.{number}: change log, tag, artifacts, announcement.",
    "Remove the feature flag for {detail}, it has been on for everyone since January.",
    "Thanks, that was quick!",
];
