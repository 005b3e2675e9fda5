use super::*;

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn sources(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    Sources {
        file: Some(("config.yaml".into(), file.into())),
        environment: owned(environment),
        flags: owned(flags),
    }
}

fn config(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Config {
    let loaded = load(&sources(file, environment, flags)).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    loaded.config
}

fn problems(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Vec<String> {
    let problems = load(&sources(file, environment, flags)).unwrap_err();
    problems.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn nothing_set_is_the_default() {
    assert_eq!(load(&Sources::default()).unwrap().config, Config::default());
    for file in ["", "# only a comment\n", "log:\n", "{}"] {
        assert_eq!(config(file, &[], &[]), Config::default(), "{file:?}");
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file = "workers: 2\nclient: {qps: 5, burst: 6}\nlog: {format: json}\n";
    let environment = [("FLEETWRIGHT_WORKERS", "3"), ("FLEETWRIGHT_CLIENT_BURST", "7")];
    let config = config(file, &environment, &[("workers", "4")]);
    assert_eq!(config.workers, 4);
    assert_eq!(config.client, ClientConfig { qps: 5.0, burst: 7, ..ClientConfig::default() });
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.machine_namespace, "openshift-machine-api");
}

#[test]
fn every_kind_of_value_can_be_written_everywhere() {
    let file = "
controllers: ['*', '-machineset']
featureGates: {MachineAPIMigration: true, Other: false}
leaderElection: {enabled: false, leaseDuration: 30s}
metrics: {address: ':1234'}
client: {qps: 7.5}
log: {format: json, level: debug}
webhooks: {interruptibleControlPlane: Warn, updates: CheckAll}
";
    let pairs = [
        ("controllers", "*, -machineset"),
        ("feature-gates", "MachineAPIMigration=true,Other=false"),
        ("leader-election-enabled", "false"),
        ("leader-election-lease-duration", "30s"),
        ("metrics-address", ":1234"),
        ("client-qps", "7.5"),
        ("log-format", "json"),
        ("log-level", "debug"),
        ("webhooks-interruptible-control-plane", "Warn"),
        ("webhooks-updates", "CheckAll"),
    ];
    let variables = pairs.map(|(flag, value)| {
        (format!("FLEETWRIGHT_{}", flag.to_uppercase().replace('-', "_")), value.to_owned())
    });
    let by_file = config(file, &[], &[]);
    assert_ne!(by_file, Config::default());
    assert_eq!(config("", &[], &pairs), by_file);
    let by_environment =
        load(&Sources { environment: variables.to_vec(), ..Sources::default() }).unwrap();
    assert_eq!(by_environment.config, by_file);
}

#[test]
fn what_is_printed_can_be_read_again() {
    let file = "
workers: 9
controllers: ['*', '-x']
featureGates: {A: true}
metrics: {address: '0'}
leaderElection: {renewDeadline: 9s500ms}
";
    let config = config(file, &[], &[]);
    let printed = config.to_yaml().unwrap();
    assert_eq!(self::config(&printed, &[], &[]), config, "{printed}");
}

#[test]
fn problems_name_the_field_the_value_and_the_fix() {
    for (file, said) in [
        (
            "leaderElection: {leaseDurations: 15s}",
            "file config.yaml: there is no leaderElection.leaseDurations; \
             did you mean leaderElection.leaseDuration?",
        ),
        (
            "leader_election: {leaseDuration: 15s}",
            "file config.yaml: there is no leader_election; did you mean leaderElection?",
        ),
        ("burst: 3", "file config.yaml: there is no burst; did you mean client.burst?"),
        (
            "log: {colour: red}",
            "file config.yaml: there is no log.colour; here can be format, level",
        ),
        (
            "client: {qps: fast}",
            "file config.yaml: client.qps cannot be \"fast\"; give a number of at least 0.1",
        ),
        ("workers: 0", "file config.yaml: workers cannot be 0; give a whole number of at least 1"),
        (
            "leaderElection: {leaseDuration: 15}",
            "file config.yaml: leaderElection.leaseDuration cannot be 15; \
             give a duration such as 15s or 1m30s",
        ),
        (
            "log: {format: xml}",
            "file config.yaml: log.format cannot be \"xml\"; give one of text, json",
        ),
        (
            "webhooks: {interruptibleControlPlane: Allow}",
            "file config.yaml: webhooks.interruptibleControlPlane cannot be \"Allow\"; \
             give one of Refuse, Warn",
        ),
        (
            "webhooks: {updates: 'Off'}",
            "file config.yaml: webhooks.updates cannot be \"Off\"; \
             give one of CheckChanges, CheckAll",
        ),
        ("log: loud", "file config.yaml: log cannot be \"loud\"; give a section with fields"),
        (
            "leaderElection: {renewDeadline: 15s}",
            "leaderElection.renewDeadline cannot be 15s; \
             give less than leaderElection.leaseDuration (15s)",
        ),
        (
            "leaderElection: {retryPeriod: 9s}",
            "leaderElection.retryPeriod cannot be 9s; \
             give more than 0s and less than 5/6 of leaderElection.renewDeadline (10s)",
        ),
        (
            "machineNamespace: My_Machines",
            "machineNamespace cannot be \"My_Machines\"; \
             give a name of lower-case letters, digits and dashes",
        ),
        (
            "metrics: {address: ':9440'}",
            "health.address cannot be 0.0.0.0:9440; metrics.address is the same; give another port",
        ),
    ] {
        assert_eq!(problems(file, &[], &[]), [said], "{file}");
    }
    let from_elsewhere = problems(
        "",
        &[("FLEETWRIGHT_LEADER_ELECTION_ENABLED", "yes")],
        &[("worker", "3"), ("feature-gates", "A"), ("zzzzzzzz", "")],
    );
    assert_eq!(
        from_elsewhere,
        [
            "environment variable FLEETWRIGHT_LEADER_ELECTION_ENABLED: leaderElection.enabled \
             cannot be \"yes\"; give true or false",
            "flag --worker: there is no --worker; did you mean --workers?",
            "flag --feature-gates: featureGates cannot be \"A\"; give a map to true or false \
             (Name=true,Other=false outside of a file)",
            "flag --zzzzzzzz: there is no --zzzzzzzz; --help lists all flags",
        ]
    );
}

#[test]
fn all_problems_are_told_at_once_and_broken_yaml_too() {
    assert_eq!(problems("workers: 0\nlogs: {}\n", &[], &[("client-burst", "-1")]).len(), 3);
    for file in ["a: [", "- a list", "just text", "workers: 1\nworkers: 2\n"] {
        assert!(problems(file, &[], &[])[0].starts_with("file config.yaml: "), "{file}");
    }
}

#[test]
fn strange_variables_are_only_remarked_upon() {
    let environment = [
        ("FLEETWRIGHT_WORKRES", "3"),
        ("FLEETWRIGHT_CONFIG", "/etc/fleetwright.yaml"),
        ("FLEETWRIGHT_SERVICE_HOST", "10.0.0.1"),
        ("FLEETWRIGHT_PORT_8081_TCP_ADDR", "10.0.0.1"),
        ("PATH", "/bin"),
    ];
    let loaded = load(&sources("", &environment, &[])).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(
        loaded.warnings,
        ["environment variable FLEETWRIGHT_WORKRES sets nothing; \
             did you mean FLEETWRIGHT_WORKERS?"]
    );
}

#[test]
fn every_field_has_a_description_and_names_of_its_own() {
    let fields = fields();
    let mut flags: Vec<_> = fields.iter().map(Field::flag).collect();
    assert!(flags.contains(&"leader-election-lease-duration".to_owned()), "{flags:?}");
    assert!(flags.contains(&"machine-namespace".to_owned()), "{flags:?}");
    flags.sort();
    let all = flags.len();
    flags.dedup();
    assert_eq!(flags.len(), all);
    for field in fields {
        assert!(!field.description.is_empty(), "{}", field.key());
        assert!(!field.default.is_null(), "{}", field.key());
    }
}
