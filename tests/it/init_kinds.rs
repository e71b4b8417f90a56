//! `init` in twenty repositories, one for each common stack.

use crate::support::TestRepo;

struct Kind {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    purpose: &'static str,
    stack: &'static str,
    commands: &'static str,
    /// Rows of routing.md.
    owners: &'static [&'static str],
    /// A path in a message, and the agent that it is routed to.
    path: (&'static str, &'static str),
}

const KINDS: [Kind; 20] = [
    Kind {
        name: "a Rust command-line tool",
        files: &[
            ("README.md", "# cut\n\n[![ci](x)](y)\n\n`cut` trims videos without encoding them again. It is fast.\n"),
            ("Cargo.toml", "[package]\nname = \"cut\"\n[dependencies]\nclap = \"4\"\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("tests/cli.rs", ""),
            ("rustfmt.toml", ""),
        ],
        purpose: "cut trims videos without encoding them again.",
        stack: "Rust; clap.",
        commands: "`cargo build`, `cargo test`.",
        owners: &["| tests/ | Tester |"],
        path: ("tests/cli.rs", "tester"),
    },
    Kind {
        name: "a Rust workspace",
        files: &[
            ("README.md", "Vault keeps the secrets of a whole company.\n"),
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
            ("crates/server/Cargo.toml", "[dependencies]\naxum = \"0.8\"\n"),
            ("crates/server/src/lib.rs", ""),
            ("docs/guide.md", ""),
        ],
        purpose: "Vault keeps the secrets of a whole company.",
        stack: "Rust.",
        commands: "`cargo build`, `cargo test`.",
        owners: &["| crates/ | Backend |", "| docs/ | Docs |"],
        path: ("crates/server/src/lib.rs", "backend"),
    },
    Kind {
        name: "an Express service",
        files: &[
            ("README.md", "# Orders\n\nThe service that takes orders for our shops.\n"),
            (
                "package.json",
                "{\"scripts\": {\"lint\": \"eslint .\", \"test\": \"jest\"}, \"dependencies\": {\"express\": \"5\"}, \"devDependencies\": {\"jest\": \"30\"}}",
            ),
            ("package-lock.json", "{}"),
            ("src/api/orders.ts", ""),
            ("src/db/schema.ts", ""),
            ("eslint.config.js", ""),
        ],
        purpose: "The service that takes orders for our shops.",
        stack: "TypeScript, JavaScript; Express, Jest.",
        commands: "`npm run lint`, `npm run test`.",
        owners: &["| src/api/ | Backend |", "| src/db/ | Backend |"],
        path: ("src/db/schema.ts", "backend"),
    },
    Kind {
        name: "a Next.js site",
        files: &[
            ("README.md", "# Shop\n\nThe **web shop** of a small tea house.\n"),
            (
                "package.json",
                "{\"scripts\": {\"build\": \"next build\", \"test\": \"vitest\"}, \"dependencies\": {\"next\": \"16\", \"react\": \"19\"}, \"devDependencies\": {\"vitest\": \"4\", \"@playwright/test\": \"1\"}}",
            ),
            ("pnpm-lock.yaml", ""),
            ("src/components/cart.tsx", ""),
            ("src/pages/index.tsx", ""),
            ("e2e/cart.spec.ts", ""),
            ("public/logo.svg", ""),
        ],
        purpose: "The web shop of a small tea house.",
        stack: "TypeScript; React, Next.js, Vitest, Playwright.",
        commands: "`pnpm run build`, `pnpm run test`.",
        owners: &[
            "| e2e/ | Tester |",
            "| public/ | Frontend |",
            "| src/components/ | Frontend |",
            "| src/pages/ | Frontend |",
        ],
        path: ("src/components/cart.tsx", "frontend"),
    },
    Kind {
        name: "a Vue application",
        files: &[
            ("README.md", "# Plan\n\nA calendar for choirs and their singers.\n"),
            (
                "package.json",
                "{\"scripts\": {\"build\": \"vite build\"}, \"dependencies\": {\"vue\": \"3\"}, \"devDependencies\": {\"vite\": \"7\"}}",
            ),
            ("yarn.lock", ""),
            ("src/App.vue", ""),
            ("src/views/Home.vue", ""),
            ("src/main.js", ""),
        ],
        purpose: "A calendar for choirs and their singers.",
        stack: "Vue, JavaScript; Vue, Vite.",
        commands: "`yarn run build`.",
        owners: &["| src/views/ | Frontend |"],
        path: ("src/views/Home.vue", "frontend"),
    },
    Kind {
        name: "a FastAPI service",
        files: &[
            ("README.md", "# Weather\n\nServes forecasts to our mobile apps.\n"),
            ("pyproject.toml", "[project]\ndependencies = [\"fastapi\"]\n[dependency-groups]\ndev = [\"pytest\"]\n"),
            ("uv.lock", ""),
            ("app/main.py", ""),
            ("app/api/forecast.py", ""),
            ("tests/test_forecast.py", ""),
            ("ruff.toml", ""),
        ],
        purpose: "Serves forecasts to our mobile apps.",
        stack: "Python; FastAPI, pytest.",
        commands: "`uv run pytest`.",
        owners: &["| app/api/ | Backend |", "| tests/ | Tester |"],
        path: ("tests/test_forecast.py", "tester"),
    },
    Kind {
        name: "a Django site",
        files: &[
            ("README.rst", "Library\n=======\n\nLends books to the people of a town.\n"),
            ("requirements.txt", "Django==5.2\n"),
            ("manage.py", ""),
            ("books/models.py", ""),
            ("static/site.css", ""),
        ],
        purpose: "Lends books to the people of a town.",
        stack: "Python; Django.",
        commands: "`python manage.py test`.",
        owners: &["| static/ | Frontend |"],
        path: ("static/site.css", "frontend"),
    },
    Kind {
        name: "a Go service",
        files: &[
            ("README.md", "# relay\n\nRelays messages between brokers.\n"),
            ("go.mod", "module example.com/relay\nrequire github.com/gin-gonic/gin v1.10.0\n"),
            ("cmd/relay/main.go", ""),
            ("internal/queue/queue.go", ""),
            ("Makefile", "lint:\n\tgolangci-lint run\ntest:\n\tgo test ./...\n"),
            (".golangci.yml", ""),
        ],
        purpose: "Relays messages between brokers.",
        stack: "Go; Gin.",
        commands: "`go build ./...`, `go test ./...`, `make test`, `make lint`.",
        owners: &["| cmd/ | Backend |", "| internal/ | Backend |"],
        path: ("internal/queue/queue.go", "backend"),
    },
    Kind {
        name: "a Spring Boot service",
        files: &[
            ("README.md", "# Payroll\n\nPays salaries on the last working day.\n"),
            ("pom.xml", "<artifactId>spring-boot</artifactId><artifactId>junit</artifactId>"),
            ("mvnw", ""),
            ("src/main/java/Pay.java", ""),
            ("src/test/java/PayTest.java", ""),
        ],
        purpose: "Pays salaries on the last working day.",
        stack: "Java; Spring Boot, JUnit.",
        commands: "`./mvnw verify`.",
        owners: &["| src/test/ | Tester |"],
        path: ("src/test/java/PayTest.java", "tester"),
    },
    Kind {
        name: "an Android application",
        files: &[
            ("README.md", "# Walks\n\nShows walks near you, without a network.\n"),
            ("gradlew", ""),
            ("build.gradle.kts", "plugins { id(\"com.android.application\") }\n"),
            ("app/src/main/java/Main.kt", ""),
            ("app/src/androidTest/java/MainTest.kt", ""),
        ],
        purpose: "Shows walks near you, without a network.",
        stack: "Kotlin; Android.",
        commands: "`./gradlew build`.",
        owners: &[],
        path: ("", ""),
    },
    Kind {
        name: "an ASP.NET service",
        files: &[
            ("README.md", "# Desk\n\nBooks desks in our offices.\n"),
            ("Desk.sln", ""),
            ("Desk/Desk.csproj", "<Project Sdk=\"Microsoft.NET.Sdk.Web\">"),
            ("Desk/Program.cs", ""),
            ("tests/Desk.Tests/BookingTests.cs", ""),
        ],
        purpose: "Books desks in our offices.",
        stack: "C#; ASP.NET Core.",
        commands: "`dotnet build`, `dotnet test`.",
        owners: &["| tests/ | Tester |"],
        path: ("tests/Desk.Tests/BookingTests.cs", "tester"),
    },
    Kind {
        name: "a Rails application",
        files: &[
            ("README.md", "# Market\n\nA market place for used bicycles.\n"),
            ("Gemfile", "gem \"rails\"\ngem \"rspec-rails\"\ngem \"rspec\"\n"),
            ("app/models/bike.rb", ""),
            ("app/views/bikes/index.html.erb", ""),
            ("db/migrate/1_bikes.rb", ""),
            ("spec/models/bike_spec.rb", ""),
        ],
        purpose: "A market place for used bicycles.",
        stack: "Ruby; Rails, RSpec.",
        commands: "`bundle exec rspec`.",
        owners: &["| app/views/ | Frontend |", "| db/ | Backend |", "| spec/ | Tester |"],
        path: ("app/views/bikes/index.html.erb", "frontend"),
    },
    Kind {
        name: "a Laravel application",
        files: &[
            ("README.md", "# Clinic\n\nKeeps the calendar of a clinic.\n"),
            (
                "composer.json",
                "{\"require\": {\"laravel/framework\": \"^12\"}, \"require-dev\": {\"phpunit/phpunit\": \"^12\"}}",
            ),
            ("artisan", ""),
            ("app/Models/Visit.php", ""),
            ("database/migrations/1_visits.php", ""),
            ("tests/Feature/VisitTest.php", ""),
        ],
        purpose: "Keeps the calendar of a clinic.",
        stack: "PHP; Laravel, PHPUnit.",
        commands: "`php artisan test`.",
        owners: &["| database/ | Backend |", "| tests/ | Tester |"],
        path: ("database/migrations/1_visits.php", "backend"),
    },
    Kind {
        name: "a Phoenix application",
        files: &[
            ("README.md", "# Chat\n\nA chat for people who share a garden.\n"),
            ("mix.exs", "defp deps, do: [{:phoenix, \"~> 1.8\"}, {:ecto_sql, \"~> 3.13\"}]\n"),
            ("lib/chat/room.ex", ""),
            ("assets/js/app.js", ""),
            ("test/chat/room_test.exs", ""),
        ],
        purpose: "A chat for people who share a garden.",
        stack: "Elixir, JavaScript; Phoenix, Ecto.",
        commands: "`mix test`.",
        owners: &["| assets/ | Frontend |", "| lib/ | Backend |", "| test/ | Tester |"],
        path: ("assets/js/app.js", "frontend"),
    },
    Kind {
        name: "a Flutter application",
        files: &[
            ("README.md", "# Steps\n\nCounts steps and keeps them on the phone.\n"),
            ("pubspec.yaml", "name: steps\ndependencies:\n  flutter:\n    sdk: flutter\n"),
            ("lib/main.dart", ""),
            ("test/widget_test.dart", ""),
        ],
        purpose: "Counts steps and keeps them on the phone.",
        stack: "Dart; Flutter.",
        commands: "`flutter test`.",
        owners: &["| lib/ | Backend |", "| test/ | Tester |"],
        path: ("test/widget_test.dart", "tester"),
    },
    Kind {
        name: "a Swift package",
        files: &[
            ("README.md", "# Parse\n\nReads bank statements into plain values.\n"),
            ("Package.swift", "// swift-tools-version: 6.0\n"),
            ("Sources/Parse/Statement.swift", ""),
            ("Tests/ParseTests/StatementTests.swift", ""),
        ],
        purpose: "Reads bank statements into plain values.",
        stack: "Swift.",
        commands: "`swift build`, `swift test`.",
        owners: &["| Tests/ | Tester |"],
        path: ("Tests/ParseTests/StatementTests.swift", "tester"),
    },
    Kind {
        name: "a C++ library",
        files: &[
            ("README.md", "# grid\n\nSolves sparse systems of equations.\n"),
            ("CMakeLists.txt", "project(grid)\n"),
            ("src/solve.cpp", ""),
            ("include/grid/solve.hpp", ""),
            ("test/solve_test.cpp", ""),
            (".clang-format", ""),
        ],
        purpose: "Solves sparse systems of equations.",
        stack: "C++.",
        commands: "`cmake -B build && cmake --build build`, `ctest --test-dir build`.",
        owners: &["| test/ | Tester |"],
        path: ("test/solve_test.cpp", "tester"),
    },
    Kind {
        name: "infrastructure in Terraform",
        files: &[
            ("README.md", "# infra\n\nEverything that runs in our cloud account.\n"),
            ("main.tf", ""),
            ("modules/network/main.tf", ""),
            ("scripts/plan.sh", ""),
        ],
        purpose: "Everything that runs in our cloud account.",
        stack: "Terraform, Shell.",
        commands: "`terraform fmt -check`, `terraform validate`.",
        owners: &["| scripts/ | Backend |"],
        path: ("scripts/plan.sh", "backend"),
    },
    Kind {
        name: "a study in notebooks",
        files: &[
            ("README.md", "# Birds\n\nHow far birds fly in autumn.\n"),
            ("requirements.txt", "pandas\ntorch\n"),
            ("notebooks/tracks.ipynb", "{}"),
            ("birds/load.py", ""),
        ],
        purpose: "How far birds fly in autumn.",
        stack: "Python, Jupyter; pandas, PyTorch.",
        commands: "",
        owners: &[],
        path: ("", ""),
    },
    Kind {
        name: "a site of documentation",
        files: &[
            ("README.md", "# Handbook\n\nThe handbook of our volunteers.\n"),
            ("mkdocs.yml", "site_name: Handbook\n"),
            ("docs/index.md", ""),
            ("docs/first-day.md", ""),
        ],
        purpose: "The handbook of our volunteers.",
        stack: "",
        commands: "`mkdocs build --strict`.",
        owners: &["| docs/ | Docs |"],
        path: ("docs/first-day.md", "docs"),
    },
];

fn field(team: &str, key: &str) -> String {
    let start = format!("- **{key}:** ");
    team.lines().find_map(|line| line.strip_prefix(start.as_str())).unwrap_or_default().to_owned()
}

#[test]
fn a_team_fits_each_kind_of_repository() {
    for kind in KINDS {
        let repo = TestRepo::empty();
        for (path, text) in kind.files {
            repo.write(path, text);
        }
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message=first"]);
        assert_eq!(repo.squad(&["init"]).code, 0, "{}", kind.name);
        let (team, routing) = (repo.read(".squad/team.md"), repo.read(".squad/routing.md"));
        let name = kind.name;
        assert_eq!(field(&team, "Purpose"), kind.purpose, "{name}");
        let said = |value: String, rest: &str| value.strip_suffix(rest).unwrap_or_default().trim_end().to_owned();
        assert_eq!(
            said(field(&team, "Stack"), " Nothing is added without a decision."),
            known(kind.stack, "the languages and frameworks that the build files show."),
            "{name}"
        );
        let usual = "the commands that the README or the CI configuration run.";
        assert_eq!(
            said(field(&team, "Build and test"), " A change is done when they pass."),
            known(kind.commands, usual),
            "{name}"
        );
        let ownership = routing.split("| Path | Owner |\n|------|-------|\n").nth(1).unwrap_or_default();
        assert_eq!(ownership.lines().collect::<Vec<_>>(), kind.owners, "{name}");
        let problems = repo.squad(&["agents", "--json"]);
        let value: serde_json::Value = serde_json::from_str(&problems.out).expect("JSON");
        assert_eq!(value["problems"], serde_json::json!([]), "{name}");
        let (path, agent) = kind.path;
        if !path.is_empty() {
            let plan = repo.squad(&["route", "--json", &format!("Something is wrong in {path}")]);
            let plan: serde_json::Value = serde_json::from_str(&plan.out).expect("JSON");
            assert_eq!(plan["agents"], serde_json::json!([agent]), "{name}: {plan}");
        }
    }
}

/// The default value if nothing was found.
fn known<'t>(found: &'t str, usual: &'t str) -> &'t str {
    if found.is_empty() { usual } else { found }
}
