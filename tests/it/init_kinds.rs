//! `init` in some thirty repositories, one for each common kind: every fact is right, or absent.

use expect_test::{Expect, expect};

use crate::support::TestRepo;

type Files = &'static [(&'static str, &'static str)];

/// Lines of code.
const LONG: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";

struct Kind {
    name: &'static str,
    files: Files,
    /// A path in a message, and the agent that it is routed to.
    path: (&'static str, &'static str),
    /// What `init` says it found, and where.
    found: Expect,
}

fn kind(name: &'static str, files: Files, path: (&'static str, &'static str), found: Expect) -> Kind {
    Kind { name, files, path, found }
}

#[rustfmt::skip]
fn kinds() -> Vec<Kind> {
    vec![
        kind(
            "a framework with a few scripts beside it",
            &[
                ("README.rst", "======\nDjango\n======\n\nDjango is a high-level Python web framework that encourages rapid development\nand clean, pragmatic design. Thanks for checking it out.\n"),
                ("pyproject.toml", "[build-system]\nrequires = [\"setuptools\"]\n[project]\nname = \"Django\"\ndependencies = [\"asgiref\", \"sqlparse\"]\n"),
                ("package.json", "{\"name\": \"Django\", \"scripts\": {\"pretest\": \"eslint .\", \"test\": \"grunt test\"}, \"devDependencies\": {\"grunt\": \"1\", \"eslint\": \"9\"}}"),
                ("tox.ini", "[tox]\n"),
                ("django/views/generic.py", LONG),
                ("django/db/models.py", LONG),
                ("django/contrib/admin/static/admin.js", "a\n"),
                ("js_tests/tests.js", "a\n"),
                ("tests/runtests.py", LONG),
                ("docs/index.txt", "x\n"),
                (".github/workflows/tests.yml", "jobs:\n  python:\n    steps:\n      - name: Run tests\n        run: python -Wall tests/runtests.py --verbosity=2\n      - run: python -m pip install -e .\n"),
                (".github/workflows/docs.yml", "jobs:\n  docs:\n    steps:\n      - run: make spelling check\n"),
                (".editorconfig", ""),
            ],
            ("django/db/models.py", ""),
            expect![[r#"
                  purpose   Django is a high-level Python web framework that encourages rapid development and clean, pragmatic design.  (README.rst:5)
                  kind      a library  (pyproject.toml)
                  stack     Python  (lines: Python 96%)
                  checks    python -Wall tests/runtests.py --verbosity=2  (.github/workflows/tests.yml:5)
                  folders   django/db/ backend, tests/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind(
            "a Flask service",
            &[
                ("README.md", "# httpbin(1): HTTP Request & Response Service\n\nFreely hosted in HTTP, HTTPS & EU flavors.\n"),
                ("Pipfile", "[packages]\nflask = \"*\"\n"),
                ("pyproject.toml", "[project]\nname = \"httpbin\"\ndependencies = [\"flask >= 2\", \"decorator\"]\n[project.optional-dependencies]\ntest = [\"pytest\", \"tox\"]\n"),
                ("httpbin/core.py", LONG),
                ("httpbin/templates/index.html", "<p>\n"),
                ("tests/test_httpbin.py", LONG),
                ("Dockerfile", ""),
            ],
            ("tests/test_httpbin.py", "tester"),
            expect![[r#"
                  purpose   Freely hosted in HTTP, HTTPS & EU flavors.  (README.md:3)
                  kind      a service  (Flask in pyproject.toml)
                  stack     Python; Flask, pytest  (lines: Python 97%; pyproject.toml)
                  checks    pytest  (pyproject.toml)
                  checked   pytest, run by squad itself after changes  (pyproject.toml)
                  folders   tests/ tester  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind(
            "a Rust library",
            &[
                ("README.md", "# lru\n\nA cache that forgets what was used least.\n"),
                ("Cargo.toml", "[package]\nname = \"lru\"\n[dependencies]\nhashbrown = \"0.15\"\n[dev-dependencies]\nclap-stub = \"1\"\n"),
                ("src/lib.rs", LONG),
                ("examples/web/package.json", "{\"dependencies\": {\"react\": \"19\"}}"),
                (".github/workflows/ci.yml", "jobs:\n  test:\n    steps:\n      - run: cargo fmt --check\n      - run: cargo test --all-features\n      - run: cargo test --target ${{ matrix.target }}\n"),
            ],
            ("src/lib.rs", ""),
            expect![[r#"
                  purpose   A cache that forgets what was used least.  (README.md:3)
                  kind      a library  (src/lib.rs)
                  stack     Rust  (lines: Rust 100%)
                  checks    cargo fmt --check, cargo test --all-features  (.github/workflows/ci.yml:4 and .github/workflows/ci.yml:5)
                  checked   cargo test --all-features, run by squad itself after changes  (.github/workflows/ci.yml:5)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind(
            "three languages in one repository",
            &[
                ("services/billing/go.mod", "module example.com/billing\n"),
                ("services/billing/main.go", LONG),
                ("web/package.json", "{\"scripts\": {\"test\": \"vitest\"}, \"dependencies\": {\"react\": \"19\"}, \"devDependencies\": {\"vitest\": \"4\"}}"),
                ("web/src/app.tsx", LONG),
                ("tools/report.py", LONG),
                ("CODEOWNERS", "* @us\n"),
            ],
            ("web/src/app.tsx", "frontend"),
            expect![[r#"
                  kind      an application with screens  (React in web/package.json)
                  stack     Go, Python, TypeScript; React, Vitest  (lines: Go 33%, Python 33%, TypeScript 33%; web/package.json)
                  folders   services/ backend, web/ frontend  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users, build and test: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind(
            "C with autotools",
            &[
                ("README", "This is xq\n\nxq reads XML the way jq reads JSON.\n"),
                ("configure.ac", "AC_INIT\n"),
                ("Makefile.am", "bin_PROGRAMS = xq\n"),
                ("src/main.c", LONG),
                ("src/main.h", "\n"),
                ("docs/manual.html", LONG),
            ],
            ("src/main.c", ""),
            expect![[r#"
                  purpose   xq reads XML the way jq reads JSON.  (README:3)
                  stack     C  (lines: C 100%)
                  checks    autoreconf -fi && ./configure && make, make check  (configure.ac and Makefile.am)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind(
            "Java with Gradle",
            &[
                ("README.md", "# Liesmich\n\nRechnet Gehälter am letzten Arbeitstag ab.\n"),
                ("build.gradle", "plugins { id 'java-library' }\n// not org.springframework.boot\ntestImplementation 'org.junit.jupiter:junit-jupiter:5.10'\n"),
                ("gradlew", ""),
                ("src/main/java/Pay.java", LONG),
                ("src/test/java/PayTest.java", LONG),
            ],
            ("src/test/java/PayTest.java", "tester"),
            expect![[r#"
                  purpose   Rechnet Gehälter am letzten Arbeitstag ab.  (README.md:3)
                  stack     Java; JUnit  (lines: Java 100%; build.gradle)
                  checks    ./gradlew build  (gradlew)
                  checked   ./gradlew build, run by squad itself after changes  (gradlew)
                  folders   src/test/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
        kind("nothing", &[], ("", ""), expect![[r#"
              team      lead, backend, frontend, tester, docs, reviewer  (preset default)
              engine    copilot  (not installed: `squad engines` shows how)
              missing   purpose, users, stack, build and test: write them in .squad/team.md
            Nothing was written: --dry-run.
        "#]]),
        kind("a README alone", &[("README.md", "# Plans\n\nHere we will build a tea shop.\n")], ("", ""), expect![[r#"
              purpose   Here we will build a tea shop.  (README.md:3)
              team      lead, backend, frontend, tester, docs, reviewer  (preset default)
              engine    copilot  (not installed: `squad engines` shows how)
              missing   users, stack, build and test: write them in .squad/team.md
            Nothing was written: --dry-run.
        "#]]),
        kind(
            "manifests that are broken",
            &[
                ("README.md", "\u{0}\u{1b}[31m\n"),
                ("package.json", "{\"scripts\": {\"test\": 7, \"lint\": "),
                ("pyproject.toml", "[project\n"),
                ("Cargo.toml", "="),
                ("src/a.py", LONG),
                (".github/workflows/ci.yml", "run: |\n  \t- run:\n\u{feff}"),
            ],
            ("", ""),
            expect![[r#"
                  stack     Python  (lines: Python 100%)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  damaged   .github/workflows/ci.yml  (line 3: a BOM must not appear inside a document at line 3, column 1)
                  damaged   Cargo.toml  (line 1: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`)
                  damaged   package.json  (EOF while parsing a value at line 1 column 32)
                  damaged   pyproject.toml  (line 1: unclosed table, expected `]`)
                  missing   purpose, users, build and test: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Rust command-line tool",
            &[
            ("README.md", "# cut\n\n[![ci](x)](y)\n\n`cut` trims videos without encoding them again. It is fast.\n"),
            ("Cargo.toml", "[package]\nname = \"cut\"\n[dependencies]\nclap = \"4\"\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("tests/cli.rs", ""),
            ("rustfmt.toml", ""),
        ],
            ("tests/cli.rs", "tester"),
            expect![[r#"
                  purpose   cut trims videos without encoding them again.  (README.md:5)
                  kind      a command-line tool  (clap in Cargo.toml)
                  stack     Rust; clap  (lines: Rust 100%; Cargo.toml)
                  checks    cargo build, cargo test  (Cargo.toml)
                  checked   cargo test, run by squad itself after changes  (Cargo.toml)
                  folders   tests/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Rust workspace",
            &[
            ("README.md", "Vault keeps the secrets of a whole company.\n"),
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
            ("crates/server/Cargo.toml", "[dependencies]\naxum = \"0.8\"\n"),
            ("crates/server/src/lib.rs", ""),
            ("docs/guide.md", ""),
        ],
            ("crates/server/src/lib.rs", "backend"),
            expect![[r#"
                  purpose   Vault keeps the secrets of a whole company.  (README.md:1)
                  kind      a service  (Axum in crates/server/Cargo.toml)
                  stack     Rust; Axum  (lines: Rust 100%; crates/server/Cargo.toml)
                  checks    cargo build, cargo test  (Cargo.toml)
                  checked   cargo test, run by squad itself after changes  (Cargo.toml)
                  folders   crates/ backend, docs/ docs  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "an Express service",
            &[
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
            ("src/db/schema.ts", "backend"),
            expect![[r#"
                  purpose   The service that takes orders for our shops.  (README.md:3)
                  kind      a service  (Express in package.json)
                  stack     TypeScript; Express, Jest  (lines: TypeScript 100%; package.json)
                  checks    npm run lint, npm run test  (package.json)
                  checked   npm run test, run by squad itself after changes  (package.json)
                  folders   src/api/ backend, src/db/ backend  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Next.js site",
            &[
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
            ("src/components/cart.tsx", "frontend"),
            expect![[r#"
                  purpose   The web shop of a small tea house.  (README.md:3)
                  kind      an application with screens  (React in package.json)
                  stack     TypeScript; React, Next.js, Vitest, Playwright  (lines: TypeScript 100%; package.json)
                  checks    pnpm run build, pnpm run test  (package.json)
                  checked   pnpm run test, run by squad itself after changes  (package.json)
                  folders   e2e/ tester, src/components/ frontend, src/pages/ frontend  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Vue application",
            &[
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
            ("src/views/Home.vue", "frontend"),
            expect![[r#"
                  purpose   A calendar for choirs and their singers.  (README.md:3)
                  kind      an application with screens  (Vue in package.json)
                  stack     Vue, JavaScript; Vite  (lines: Vue 66%, JavaScript 33%; package.json)
                  checks    yarn run build  (package.json)
                  checked   yarn run build, run by squad itself after changes  (package.json)
                  folders   src/views/ frontend  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a FastAPI service",
            &[
            ("README.md", "# Weather\n\nServes forecasts to our mobile apps.\n"),
            ("pyproject.toml", "[project]\ndependencies = [\"fastapi\"]\n[dependency-groups]\ndev = [\"pytest\"]\n"),
            ("uv.lock", ""),
            ("app/main.py", ""),
            ("app/api/forecast.py", ""),
            ("tests/test_forecast.py", ""),
            ("ruff.toml", ""),
        ],
            ("tests/test_forecast.py", "tester"),
            expect![[r#"
                  purpose   Serves forecasts to our mobile apps.  (README.md:3)
                  kind      a service  (FastAPI in pyproject.toml)
                  stack     Python; FastAPI, pytest  (lines: Python 100%; pyproject.toml)
                  checks    uv run pytest  (pyproject.toml)
                  checked   uv run pytest, run by squad itself after changes  (pyproject.toml)
                  folders   app/api/ backend, tests/ tester  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Django site",
            &[
            ("README.rst", "Library\n=======\n\nLends books to the people of a town.\n"),
            ("requirements.txt", "Django==5.2\n"),
            ("manage.py", ""),
            ("books/models.py", ""),
            ("static/site.css", ""),
        ],
            ("static/site.css", "frontend"),
            expect![[r#"
                  purpose   Lends books to the people of a town.  (README.rst:4)
                  kind      an application with screens  (lines of screens)
                  stack     Python, CSS; Django  (lines: Python 66%, CSS 33%; requirements.txt)
                  checks    python manage.py test  (manage.py)
                  checked   python manage.py test, run by squad itself after changes  (manage.py)
                  folders   static/ frontend  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Go service",
            &[
            ("README.md", "# relay\n\nRelays messages between brokers.\n"),
            ("go.mod", "module example.com/relay\nrequire github.com/gin-gonic/gin v1.10.0\n"),
            ("cmd/relay/main.go", ""),
            ("internal/queue/queue.go", ""),
            ("Makefile", "lint:\n\tgolangci-lint run\ntest:\n\tgo test ./...\n"),
            (".golangci.yml", ""),
        ],
            ("internal/queue/queue.go", "backend"),
            expect![[r#"
                  purpose   Relays messages between brokers.  (README.md:3)
                  kind      a service  (Gin in go.mod)
                  stack     Go; Gin  (lines: Go 100%; go.mod)
                  checks    make test  (Makefile)
                  checked   make test, run by squad itself after changes  (Makefile)
                  folders   cmd/ backend, internal/ backend  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Spring Boot service",
            &[
            ("README.md", "# Payroll\n\nPays salaries on the last working day.\n"),
            ("pom.xml", "<project><artifactId>spring-boot</artifactId><artifactId>junit</artifactId></project>"),
            ("mvnw", ""),
            ("src/main/java/Pay.java", ""),
            ("src/test/java/PayTest.java", ""),
        ],
            ("src/test/java/PayTest.java", "tester"),
            expect![[r#"
                  purpose   Pays salaries on the last working day.  (README.md:3)
                  kind      a service  (Spring Boot in pom.xml)
                  stack     Java; Spring Boot, JUnit  (lines: Java 100%; pom.xml)
                  checks    ./mvnw verify  (mvnw)
                  checked   ./mvnw verify, run by squad itself after changes  (mvnw)
                  folders   src/test/ tester  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "an Android application",
            &[
            ("README.md", "# Walks\n\nShows walks near you, without a network.\n"),
            ("gradlew", ""),
            ("build.gradle.kts", "plugins { id(\"com.android.application\") }\n"),
            ("app/src/main/java/Main.kt", ""),
            ("app/src/androidTest/java/MainTest.kt", ""),
        ],
            ("", ""),
            expect![[r#"
                  purpose   Shows walks near you, without a network.  (README.md:3)
                  kind      an application with screens  (Android in build.gradle.kts)
                  stack     Kotlin; Android  (lines: Kotlin 100%; build.gradle.kts)
                  checks    ./gradlew build  (gradlew)
                  checked   ./gradlew build, run by squad itself after changes  (gradlew)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "an ASP.NET service",
            &[
            ("README.md", "# Desk\n\nBooks desks in our offices.\n"),
            ("Desk.sln", ""),
            ("Desk/Desk.csproj", "<Project Sdk=\"Microsoft.NET.Sdk.Web\"></Project>"),
            ("Desk/Program.cs", ""),
            ("tests/Desk.Tests/BookingTests.cs", ""),
        ],
            ("tests/Desk.Tests/BookingTests.cs", "tester"),
            expect![[r#"
                  purpose   Books desks in our offices.  (README.md:3)
                  kind      a service  (ASP.NET Core in Desk/Desk.csproj)
                  stack     C#; ASP.NET Core  (lines: C# 100%; Desk/Desk.csproj)
                  checks    dotnet build, dotnet test  (Desk.sln)
                  checked   dotnet test, run by squad itself after changes  (Desk.sln)
                  folders   tests/ tester  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Rails application",
            &[
            ("README.md", "# Market\n\nA market place for used bicycles.\n"),
            ("Gemfile", "gem \"rails\"\ngem \"rspec-rails\"\ngem \"rspec\"\n"),
            ("app/models/bike.rb", ""),
            ("app/views/bikes/index.html.erb", ""),
            ("db/migrate/1_bikes.rb", ""),
            ("spec/models/bike_spec.rb", ""),
        ],
            ("app/views/bikes/index.html.erb", "frontend"),
            expect![[r#"
                  purpose   A market place for used bicycles.  (README.md:3)
                  kind      an application with screens  (lines of screens)
                  stack     Ruby, HTML; Rails, RSpec  (lines: Ruby 75%, HTML 25%; Gemfile)
                  checks    bundle exec rspec  (Gemfile)
                  checked   bundle exec rspec, run by squad itself after changes  (Gemfile)
                  folders   app/views/ frontend, db/ backend, spec/ tester  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Laravel application",
            &[
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
            ("database/migrations/1_visits.php", "backend"),
            expect![[r#"
                  purpose   Keeps the calendar of a clinic.  (README.md:3)
                  kind      a service  (Laravel in composer.json)
                  stack     PHP; Laravel, PHPUnit  (lines: PHP 100%; composer.json)
                  checks    php artisan test  (artisan)
                  checked   php artisan test, run by squad itself after changes  (artisan)
                  folders   database/ backend, tests/ tester  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Phoenix application",
            &[
            ("README.md", "# Chat\n\nA chat for people who share a garden.\n"),
            ("mix.exs", "defp deps, do: [{:phoenix, \"~> 1.8\"}, {:ecto_sql, \"~> 3.13\"}]\n"),
            ("lib/chat/room.ex", ""),
            ("assets/js/app.js", ""),
            ("test/chat/room_test.exs", ""),
        ],
            ("assets/js/app.js", "frontend"),
            expect![[r#"
                  purpose   A chat for people who share a garden.  (README.md:3)
                  kind      an application with screens  (what is in assets/)
                  stack     Elixir, JavaScript; Phoenix, Ecto  (lines: Elixir 75%, JavaScript 25%; mix.exs)
                  checks    mix test  (mix.exs)
                  checked   mix test, run by squad itself after changes  (mix.exs)
                  folders   assets/ frontend, lib/ backend, test/ tester  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Flutter application",
            &[
            ("README.md", "# Steps\n\nCounts steps and keeps them on the phone.\n"),
            ("pubspec.yaml", "name: steps\ndependencies:\n  flutter:\n    sdk: flutter\n"),
            ("lib/main.dart", ""),
            ("test/widget_test.dart", ""),
        ],
            ("test/widget_test.dart", "tester"),
            expect![[r#"
                  purpose   Counts steps and keeps them on the phone.  (README.md:3)
                  kind      an application with screens  (Flutter in pubspec.yaml)
                  stack     Dart; Flutter  (lines: Dart 100%; pubspec.yaml)
                  checks    flutter test  (pubspec.yaml)
                  checked   flutter test, run by squad itself after changes  (pubspec.yaml)
                  folders   test/ tester  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Swift package",
            &[
            ("README.md", "# Parse\n\nReads bank statements into plain values.\n"),
            ("Package.swift", "// swift-tools-version: 6.0\n"),
            ("Sources/Parse/Statement.swift", ""),
            ("Tests/ParseTests/StatementTests.swift", ""),
        ],
            ("Tests/ParseTests/StatementTests.swift", "tester"),
            expect![[r#"
                  purpose   Reads bank statements into plain values.  (README.md:3)
                  stack     Swift  (lines: Swift 100%)
                  checks    swift build, swift test  (Package.swift)
                  checked   swift test, run by squad itself after changes  (Package.swift)
                  folders   Tests/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a C++ library",
            &[
            ("README.md", "# grid\n\nSolves sparse systems of equations.\n"),
            ("CMakeLists.txt", "project(grid)\n"),
            ("src/solve.cpp", ""),
            ("include/grid/solve.hpp", ""),
            ("test/solve_test.cpp", ""),
            (".clang-format", ""),
        ],
            ("test/solve_test.cpp", "tester"),
            expect![[r#"
                  purpose   Solves sparse systems of equations.  (README.md:3)
                  stack     C++  (lines: C++ 100%)
                  checks    cmake -B build && cmake --build build  (CMakeLists.txt)
                  folders   test/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "infrastructure in Terraform",
            &[
            ("README.md", "# infra\n\nEverything that runs in our cloud account.\n"),
            ("main.tf", ""),
            ("modules/network/main.tf", ""),
            ("scripts/plan.sh", ""),
        ],
            ("scripts/plan.sh", "backend"),
            expect![[r#"
                  purpose   Everything that runs in our cloud account.  (README.md:3)
                  kind      infrastructure  (main.tf)
                  stack     Terraform, Shell  (lines: Terraform 66%, Shell 33%)
                  checks    terraform fmt -check, terraform validate  (main.tf)
                  folders   scripts/ backend  (by what is in them)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a study in notebooks",
            &[
            ("README.md", "# Birds\n\nHow far birds fly in autumn.\n"),
            ("requirements.txt", "pandas\ntorch\n"),
            ("notebooks/tracks.ipynb", "{}"),
            ("birds/load.py", ""),
        ],
            ("", ""),
            expect![[r#"
                  purpose   How far birds fly in autumn.  (README.md:3)
                  kind      a study in notebooks  (notebooks/tracks.ipynb)
                  stack     Jupyter, Python; pandas, PyTorch  (lines: Jupyter 50%, Python 50%; requirements.txt)
                  team      lead, backend, docs  (preset research)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users, build and test: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "CI that deploys, publishes and cleans besides",
            &[
                ("README.md", "# pay\n\n**NOTE: the main branch is under heavy development.**\n\nThe pay_roll program pays *all* of us, e.g. on Fridays. See __init__.\n"),
                ("pyproject.toml", "[project]\nname = \"pay\"\n"),
                ("Makefile", "deploy-test:\ntest-clean:\nlatest:\ncontest:\ntest-it:\n"),
                ("pay/a.py", LONG),
                (
                    ".github/workflows/ci.yml",
                    "jobs:\n  test:\n    steps:\n      - run: make deploy-test\n      - run: ./deploy.sh test\n      - run: make test-clean\n\
                     \x20     - run: npm run test:update-snapshots\n      - run: make latest contest\n      - run: pytest --collect-only\n\
                     \x20     - run: pytest -q\n      - run: make test-missing\n      - run: npm test\n      - run: make test-it\n        if: failure()\n\
                     \x20 old:\n    if: false\n    steps:\n      - run: make test-it\n  publish:\n    steps:\n      - run: make test-it\n",
                ),
                (".gitlab-ci.yml", "deploy:\n  script: make test-it\ncheck:\n  script: make deploy-test-env\n"),
            ],
            ("", ""),
            expect![[r#"
                  purpose   The pay_roll program pays all of us, e.g. on Fridays.  (README.md:5)
                  kind      a library  (pyproject.toml)
                  stack     Python  (lines: Python 100%)
                  checks    pytest -q  (.github/workflows/ci.yml:10)
                  checked   pytest -q, run by squad itself after changes  (.github/workflows/ci.yml:10)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "three languages with a workflow",
            &[
                ("api/go.mod", "module example.com/api\n"),
                ("api/main.go", LONG),
                ("ml/train.py", LONG),
                ("web/package.json", "{\"scripts\": {\"test\": \"vitest\"}}"),
                ("web/src/app.ts", LONG),
                (
                    ".github/workflows/ci.yml",
                    "jobs:\n  all:\n    steps:\n      - run: npm test\n        working-directory: web\n      - run: |\n          cd ml\n          pytest\n\
                     \x20     - run: cd api && go test ./...\n",
                ),
            ],
            ("", ""),
            expect![[r#"
                  kind      an application with screens  (what is in web/)
                  stack     Go, Python, TypeScript  (lines: Go 33%, Python 33%, TypeScript 33%)
                  checks    cd web && npm test, cd ml && pytest, cd api && go test ./...  (.github/workflows/ci.yml:4, .github/workflows/ci.yml:8 and .github/workflows/ci.yml:9)
                  folders   api/ backend, web/ frontend  (by what is in them)
                  team      lead, backend, frontend, tester, reviewer  (preset web)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a Ruby gem",
            &[
                ("README.md", "# cut\n\nThis README would normally document whatever steps are necessary.\n\nIt cuts films into scenes.\n"),
                ("Gemfile", "source \"https://rubygems.org\"\ngemspec\n"),
                ("Rakefile", "RSpec::Core::RakeTask.new(:spec)\ntask default: :spec\n"),
                ("cut.gemspec", ""),
                ("lib/cut.rb", LONG),
                ("spec/cut_spec.rb", LONG),
                (".github/workflows/ci.yml", "jobs:\n  test:\n    steps:\n      - run: bundle exec rake\n"),
            ],
            ("spec/cut_spec.rb", "tester"),
            expect![[r#"
                  kind      a library  (cut.gemspec)
                  stack     Ruby  (lines: Ruby 100%)
                  checks    bundle exec rake  (.github/workflows/ci.yml:4)
                  folders   lib/ backend, spec/ tester  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a language that squad does not know",
            &[
                ("README.md", "# tide\n\nTide tells sailors when the water comes.\n"),
                ("gleam.toml", "name = \"tide\"\n"),
                ("src/tide.gleam", LONG),
                ("docs/guide.md", "# Guide\n"),
            ],
            ("", ""),
            expect![[r#"
                  purpose   Tide tells sailors when the water comes.  (README.md:3)
                  folders   docs/ docs  (by what is in them)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users, stack, build and test: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "Zig",
            &[("build.zig", LONG), ("src/main.zig", LONG), ("Makefile", "build:\ncheck:\n")],
            ("", ""),
            expect![[r#"
                  stack     Zig  (lines: Zig 100%)
                  checks    make build, make check  (Makefile)
                  checked   make check, run by squad itself after changes  (Makefile)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "C with Meson",
            &[("meson.build", "project('a', 'c')\n"), ("src/a.c", LONG)],
            ("", ""),
            expect![[r#"
                  stack     C  (lines: C 100%)
                  checks    meson setup build, meson test -C build  (meson.build)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a .NET library",
            &[
                ("A.sln", ""),
                ("src/A/A.csproj", "<Project></Project>"),
                ("src/A/A.cs", LONG),
                (".github/workflows/ci.yml", "jobs:\n  t:\n    steps:\n      - run: dotnet build\n      - run: dotnet test --no-build\n"),
            ],
            ("", ""),
            expect![[r#"
                  stack     C#  (lines: C# 100%)
                  checks    dotnet build, dotnet test --no-build  (.github/workflows/ci.yml:4 and .github/workflows/ci.yml:5)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "Terraform with a workflow",
            &[
                ("main.tf", LONG),
                (".github/workflows/ci.yml", "jobs:\n  t:\n    steps:\n      - run: terraform init\n      - run: terraform fmt -check -recursive\n      - run: terraform validate\n"),
            ],
            ("", ""),
            expect![[r#"
                  kind      infrastructure  (main.tf)
                  stack     Terraform  (lines: Terraform 100%)
                  checks    terraform fmt -check -recursive, terraform validate  (.github/workflows/ci.yml:5 and .github/workflows/ci.yml:6)
                  team      lead, backend, tester, reviewer  (preset service)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   purpose, users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "more manifests that are broken",
            &[
                ("a.py", "1\n"),
                ("go.mod", "modul"),
                ("pom.xml", "<project><"),
                ("web/a.csproj", "<Project"),
                (".github/workflows/ci.yml", "jobs: [\n"),
            ],
            ("", ""),
            expect![[r#"
                  stack     Python  (lines: Python 100%)
                  team      lead, backend, tester, docs, reviewer  (preset library)
                  engine    copilot  (not installed: `squad engines` shows how)
                  damaged   .github/workflows/ci.yml  (line 1: unclosed bracket '[' at line 1, column 7)
                  damaged   go.mod  (line 1: unknown directive: modul)
                  damaged   pom.xml  (line 1: unknown token at 1:10)
                  damaged   web/a.csproj  (line 1: the document does not have a root node)
                  missing   purpose, users, build and test: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),

        kind(
            "a site of documentation",
            &[
            ("README.md", "# Handbook\n\nThe handbook of our volunteers.\n"),
            ("mkdocs.yml", "site_name: Handbook\n"),
            ("docs/index.md", ""),
            ("docs/first-day.md", ""),
        ],
            ("docs/first-day.md", "docs"),
            expect![[r#"
                  purpose   The handbook of our volunteers.  (README.md:3)
                  kind      documentation  (mkdocs.yml)
                  stack     MkDocs  (mkdocs.yml)
                  checks    mkdocs build  (mkdocs.yml)
                  folders   docs/ docs  (by what is in them)
                  team      docs, reviewer  (preset docs)
                  engine    copilot  (not installed: `squad engines` shows how)
                  missing   users: write them in .squad/team.md
                Nothing was written: --dry-run.
            "#]],
        ),
    ]
}

/// A manifest that was deleted says nothing; a secret in the README is not repeated.
#[test]
fn what_is_gone_or_secret_is_not_told() {
    let repo = TestRepo::empty();
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ0bC2dF4hJ6");
    repo.write("README.md", &format!("# A\n\nThis draws trees on maps with {token} for all.\n"));
    repo.write("go.mod", "module a\n");
    repo.write("tests/a.py", "1\n");
    repo.write("a.py", "1\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    for gone in ["go.mod", "tests/a.py"] {
        std::fs::remove_file(repo.root().join(gone)).expect("it is there");
    }
    let shown = repo.squad(&["init", "--dry-run"]);
    expect![[r#"
          stack     Python  (lines: Python 100%)
          team      lead, backend, tester, docs, reviewer  (preset library)
          engine    copilot  (not installed: `squad engines` shows how)
          left out  purpose: what looks like a secret (github-token) is in its paragraph  (README.md:3)
          missing   purpose, users, build and test: write them in .squad/team.md
        Nothing was written: --dry-run.
    "#]]
    .assert_eq(&shown.err);
    assert_eq!(repo.squad(&["init"]).code, 0);
    assert!(!repo.read(".squad/team.md").contains("ghp_") && !shown.to_string().contains("ghp_"));
}

fn made(kind: &Kind) -> TestRepo {
    let repo = TestRepo::empty();
    for (path, text) in kind.files {
        repo.write(path, text);
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first", "--allow-empty"]);
    repo
}

#[test]
fn a_team_fits_each_kind_of_repository() {
    for kind in kinds() {
        let repo = made(&kind);
        let name = kind.name;
        let shown = repo.squad(&["init", "--dry-run"]);
        assert!(shown.code == 0 && !repo.exists(".squad"), "{name}: {shown}");
        kind.found.assert_eq(&shown.err);
        let said: serde_json::Value = serde_json::from_str(&repo.squad(&["init", "--json"]).out).expect("JSON");
        let found = said["found"].as_array().expect("facts");
        let value = |name: &str| found.iter().find(|line| line["name"] == name).map(|line| line["value"].clone());
        let text = |value: Option<serde_json::Value>| value.map(|value| value.as_str().expect("text").to_owned());
        // What the prompts of the agents hear is what was shown, and no more.
        let team = repo.read(".squad/team.md");
        let told = |key: &str| {
            let start = format!("- **{key}:** ");
            team.lines().find_map(|line| line.strip_prefix(start.as_str()).map(str::to_owned))
        };
        assert_eq!(told("Purpose"), text(value("purpose")), "{name}");
        let stack = text(value("stack")).map(|stack| format!("{stack}. Nothing is added without a decision."));
        assert_eq!(told("Stack"), stack, "{name}");
        let checks = text(value("checks"))
            .map(|checks| format!("`{}`. A change is done when they pass.", checks.replace(", ", "`, `")));
        assert_eq!((told("Build and test"), told("Users")), (checks, None), "{name}");
        if repo.read(".squad/config.toml").contains("\n[check]\n") {
            assert_eq!(repo.squad(&["trust", "approve", "check.run", "--yes"]).code, 0, "{name}");
        }
        let agents = repo.squad(&["agents", "--json"]);
        let value_of: serde_json::Value = serde_json::from_str(&agents.out).expect("JSON");
        assert_eq!(value_of["problems"], serde_json::json!([]), "{name}");
        let slugs: Vec<&str> =
            value_of["agents"].as_array().expect("agents").iter().filter_map(|agent| agent["slug"].as_str()).collect();
        assert_eq!(Some(slugs.join(", ")), text(value("team")), "{name}");
        let (path, agent) = kind.path;
        if !path.is_empty() {
            let plan = repo.squad(&["route", "--json", &format!("Something is wrong in {path}")]);
            let plan: serde_json::Value = serde_json::from_str(&plan.out).expect("JSON");
            assert!(agent.is_empty() || plan["agents"] == serde_json::json!([agent]), "{name}: {plan}");
            assert!(slugs.contains(&"frontend") || !plan["agents"].to_string().contains("frontend"), "{name}: {plan}");
        }
    }
}
