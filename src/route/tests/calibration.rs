//! Whether routing is right as often as it says, on teams of several sizes that nobody tuned it for.

use super::gates::harbour;
use super::*;

/// Five members with one trade each.
fn bakery() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role |\n|-|-|\n\
             | Ola | Lead |\n\
             | Per | Backend Dev |\n\
             | Siri | Frontend Dev |\n\
             | Tove | Tester |\n\
             | Ulf | DevOps |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | Scope, priorities, architecture | Ola | What next, trade-offs |\n\
             | Orders, stock, suppliers | Per | order service, stock levels, supplier import |\n\
             | Shop pages | Siri | basket, product page, styling |\n\
             | Quality | Tove | test cases, regressions |\n\
             | Hosting and builds | Ulf | pipelines, containers, monitoring |\n",
        ),
    ])
}

const BAKERY: &str = "\
    per: The order service counts a returned loaf twice\n\
    per: Suppliers send prices with a comma now, the import has to take both\n\
    per: Add a column for allergens to the products table and fill it from the import\n\
    siri: The basket forgets its items when I reload the page\n\
    siri: Make the product photos fit on small phones\n\
    siri: Checkout button stays grey after the address was corrected\n\
    tove: Cover the discount rules with regression tests\n\
    tove: Playwright suite has three flaky cases since the upgrade\n\
    ulf: Pipeline takes 40 minutes, cache the Go modules\n\
    ulf: Alert us when the shop answers slower than two seconds\n\
    ulf: Helm chart still asks for the old image tag\n\
    ola: Should the supplier import become a service of its own?\n\
    ola: Plan the work for the Easter campaign\n\
    per: Stock levels go below zero when two people buy the last one\n\
    siri: Dark text on dark ground in the newsletter form\n\
    per: Log in fails for suppliers with an umlaut in their name\n\
    ulf: Roll the containers back to last week's version";

/// Four developers of different parts.
fn solver() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role |\n|-|-|\n\
             | Kepler | Core Developer |\n\
             | Newton | Python Bindings Developer |\n\
             | Gauss | Numerics Engineer |\n\
             | Euler | Documentation Engineer |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | Parser, AST, scheduling | Kepler | grammar, tokens, planner |\n\
             | Python API, wheels | Newton | pyo3, typing stubs, pip packages |\n\
             | Linear algebra, accuracy, speed | Gauss | sparse matrices, convergence, benchmarks |\n\
             | Manual, notebooks | Euler | tutorials, docstrings |\n",
        ),
    ])
}

const SOLVER: &str = "\
    kepler: The grammar accepts a comma before the closing bracket\n\
    kepler: Tokens lose their position after a line comment\n\
    kepler: Planner picks a task that waits for itself\n\
    newton: pip install fails on Python 3.13 for macOS\n\
    newton: Typing stubs miss the new keyword of solve()\n\
    newton: Release the GIL while the model is solved\n\
    gauss: Convergence stalls for badly scaled matrices\n\
    gauss: Speed up the sparse factorisation\n\
    gauss: Benchmark the new preconditioner against the old one\n\
    euler: Docstrings of the model class are out of date\n\
    euler: Write a tutorial on warm starts\n\
    euler: Notebook three shows an old plot\n\
    gauss: Answers differ in the last digits between two runs\n\
    newton: Wheels for musl Linux\n\
    euler: Fix the typos in the manual";

/// Developers that only their languages tell apart.
fn polyglot() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role |\n|-|-|\n\
             | Ria | Lead |\n\
             | Ron | Rust Developer |\n\
             | Pam | Python Developer |\n\
             | Cid | C# Developer |\n\
             | Jan | Java Developer |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | Planning | Ria | scope |\n\
             | Rust core | Ron | engine |\n\
             | Python SDK | Pam | client |\n\
             | .NET SDK | Cid | client |\n\
             | Java SDK | Jan | client |\n",
        ),
    ])
}

const POLYGLOT: &str = "\
    ron: cargo clippy warns about an unused import\n\
    ron: The borrow checker rejects the new cache\n\
    ron: serde renames the field twice\n\
    pam: pytest cannot find the fixtures\n\
    pam: pip install fails behind a proxy\n\
    pam: Add type hints for mypy\n\
    pam: The asyncio loop is closed too early\n\
    cid: NuGet restore takes forever\n\
    cid: The csproj targets the wrong framework\n\
    cid: Blazor page does not build\n\
    jan: gradle build is slow\n\
    jan: JUnit tests hang in the SDK\n\
    jan: NullPointerException when the client reconnects\n\
    jan: Publish to Maven Central\n\
    cid: dotnet build shows a nullable reference warning";

/// Eleven members whose trades overlap.
fn clinic() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role |\n|-|-|\n\
             | Ava | Tech Lead |\n\
             | Ben | Backend Engineer |\n\
             | Cal | API Engineer |\n\
             | Dee | Database Engineer |\n\
             | Eli | Frontend Engineer |\n\
             | Fae | Mobile Engineer |\n\
             | Gil | QA Engineer |\n\
             | Hal | DevOps Engineer |\n\
             | Ida | Security Engineer |\n\
             | Jud | Technical Writer |\n\
             | Kai | Data Analyst |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | Architecture | Ava | design proposals, module boundaries |\n\
             | Appointments, billing | Ben | booking rules, invoices, reminders |\n\
             | Public API | Cal | REST, webhooks, OpenAPI |\n\
             | Schema, queries | Dee | migrations, indexes, replication |\n\
             | Web client | Eli | calendar view, forms |\n\
             | iOS and Android | Fae | push messages, offline mode |\n\
             | Testing | Gil | test plans, e2e |\n\
             | Deployments | Hal | Terraform, rollbacks |\n\
             | Security, privacy | Ida | audit log, consent, access rights |\n\
             | Docs | Jud | manuals, release notes |\n\
             | Reports | Kai | statistics, exports |\n",
        ),
    ])
}

const CLINIC: &str = "\
    ben: Reminders go out twice for a moved appointment\n\
    ben: An invoice must not be changed after it was sent\n\
    ben: Let the practice close a day, nobody may book then\n\
    cal: Webhook deliveries stop after the first 500\n\
    cal: Describe the new fields in the OpenAPI file\n\
    cal: REST calls without a version header should get v2\n\
    dee: Index the visits by patient and date\n\
    dee: The migration of the addresses table takes an hour\n\
    dee: Replication lags ten minutes behind\n\
    eli: Calendar view shows Sunday first\n\
    eli: The form for new patients loses the phone number\n\
    eli: Colours of the week view are too pale\n\
    fae: Push messages do not arrive on Android 15\n\
    fae: The app needs an offline mode for home visits\n\
    gil: Write a test plan for the new booking rules\n\
    gil: e2e run fails every other night\n\
    hal: Move the staging cluster to the new Terraform module\n\
    hal: A rollback leaves the old pods running\n\
    ida: Doctors can see the audit log of other practices\n\
    ida: Ask for consent before data goes to the laboratory\n\
    jud: The manual for reception staff lacks the new screens\n\
    jud: Draft release notes for 4.2\n\
    kai: The monthly statistics count cancelled visits\n\
    kai: Export the visits per doctor as CSV\n\
    ava: Propose how billing and appointments could be separated\n\
    ava: Should we keep one database per practice?\n\
    ida: Rotate the keys of the laboratory link\n\
    cal: Rate limit the public API";

/// For the ten of the harbour.
const HARBOUR: &str = "\
    ben: Add an endpoint for berth booking\n\
    ben: The webhooks are sent twice\n\
    cleo: The map of the quay jumps when I zoom\n\
    cleo: Let the forms remember what was typed\n\
    dan: The migration of the ships table locks everything\n\
    dan: Two slow queries hold up the morning\n\
    edda: Write unit tests for the tide parser\n\
    edda: The flaky test of the pilot list fails again\n\
    finn: The pipeline is red since the last release\n\
    finn: Build smaller containers\n\
    gwen: Rotate the secrets of the gate\n\
    gwen: Lock a login after five wrong passwords\n\
    hugo: The README names the old port\n\
    hugo: Write a guide for new captains\n\
    ines: The Android app forgets its push token\n\
    ines: Support the new iOS widget\n\
    jon: The ETL of the cargo lists stopped\n\
    jon: Add a dashboard of waiting times\n\
    anna: Plan the roadmap for the winter\n\
    anna: Propose module boundaries for the tariff code\n\
    cleo ines: The list of ships is hard to read on a phone\n\
    ben dan: Booking two berths at once loses one of them\n\
    ben: Return 404 for unknown ships\n\
    finn gwen: The certificate of the staging server expires tomorrow\n\
    jon dan: The report counts some ships twice\n\
    edda ben: Reproduce the crash of the booking service\n\
    cleo: The dark theme makes the buttons invisible\n\
    hugo: Explain the tariff rules on one page\n\
    dan: Add an index for the arrivals by day\n\
    finn: Publish the image on each tag\n\
    ben cleo: The date is off by one day\n\
    gwen ben: Check who may call the tariff endpoint\n\
    jon: Load last year's tides into the warehouse\n\
    ines: The app drains the battery\n\
    edda: Cover the edge cases of the tide parser\n\
    ben: Validate the length of a ship";

/// How many plans of one agent are in each tenth of confidence, the sum of what they say, and how many are right.
#[derive(Default)]
struct Answers {
    cases: f64,
    bins: [(f64, f64, f64); 10],
}

impl Answers {
    fn of(teams: &[(Team, &str)]) -> Self {
        let mut answers = Self::default();
        for (team, case) in teams.iter().flat_map(|(team, cases)| cases.lines().map(move |case| (team, case))) {
            let (accepted, message) = case.split_once(": ").expect("a label");
            let plan = plan(team, message);
            answers.cases += 1.0;
            let [agent] = &plan.agents[..] else { continue };
            let is_right = accepted.split(' ').any(|name| name == agent.as_str());
            let (count, said, right) = &mut answers.bins[((plan.confidence * 10.0) as usize).min(9)];
            (*count, *said, *right) = (*count + 1.0, *said + plan.confidence, *right + f64::from(u8::from(is_right)));
        }
        answers
    }

    fn assert_honest(&self) {
        let (count, right) = self.bins.iter().fold((0.0, 0.0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.2));
        assert!(count >= 0.42 * self.cases && right >= 0.90 * count, "{right} of {count} of {}", self.cases);
        for (count, said, right) in self.bins.iter().filter(|(count, ..)| *count >= 5.0) {
            assert!(right / count >= said / count - 0.10, "{:?}", self.bins);
        }
    }
}

#[test]
fn what_is_said_to_be_sure_is_right_as_often() {
    let small = [(bakery(), BAKERY), (solver(), SOLVER), (polyglot(), POLYGLOT)];
    let large = [(clinic(), CLINIC), (harbour(), HARBOUR)];
    Answers::of(&small).assert_honest();
    // Where many could be meant, too.
    Answers::of(&large).assert_honest();
}
