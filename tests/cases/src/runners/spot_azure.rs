//! `spot-azure.json`: how virtual machines of Azure are bought, and what is made of them.

use fleetwright_api::{
    azure::AzureMachineProviderSpec,
    config::{AzureCloud, PlatformType},
    machine::Machine,
};
use fleetwright_cloud::{ErrorClass, Instance};
use fleetwright_cloud_azure::{
    SpotOptions, availability_set, classify, instance_state, vm_state, zone,
};
use fleetwright_machines::{
    admit::{Facts, machine},
    machine::observe::{Draft, observe},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Outcome, Runner, Use,
    aws_actuator_lifecycle::{exists_as, instance},
};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-azure.json",
    tables: &[
        ("spotOptions.cases", Use::Rows(spot_options)),
        ("spotOptions.derived", Use::Rows(spot_options)),
        ("labels.cases", Use::Rows(labels)),
        ("availabilitySet.cases", Use::Rows(set)),
        ("exists.cases", Use::Rows(exists)),
        ("vmState.cases", Use::Rows(state)),
        ("webhook.cases", Use::Rows(webhook)),
    ],
};

fn spec(value: &Value) -> Result<AzureMachineProviderSpec, Outcome> {
    serde_json::from_value(value.clone()).map_err(|error| Outcome::Failed(error.to_string()))
}

fn spot_options(row: &Row<'_>) -> Outcome {
    let asked = spec(row.get("in")).and_then(|spec| {
        SpotOptions::of(&spec).map_err(|error| Outcome::Failed(error.to_string()))
    });
    let asked = match asked {
        Ok(asked) => asked,
        Err(failed) => return failed,
    };
    // The rows say "" for what is not sent; those that are derived speak of the price alone.
    let found = json!({
        "priority": asked.priority.unwrap_or_default(),
        "evictionPolicy": asked.eviction_policy.unwrap_or_default(),
        "billingProfile": asked.billing_profile,
    });
    let keys = ["priority", "evictionPolicy", "billingProfile"];
    let said = |key: &&str| row.value().get(*key).is_some();
    let pick = |from: &Value| -> Vec<Value> {
        keys.iter().filter(|key| said(key)).map(|key| from[*key].clone()).collect()
    };
    Outcome::equal(&pick(row.value()), &pick(&found))
}

/// A Machine with a provider spec of Azure.
fn azure_machine(spec: &Value) -> Result<Machine, Outcome> {
    let mut value = if spec.is_null() { json!({}) } else { spec.clone() };
    value["apiVersion"] = AzureMachineProviderSpec::API_VERSIONS[0].into();
    value["kind"] = AzureMachineProviderSpec::KIND.into();
    let object = json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": value}}});
    serde_json::from_value(object).map_err(|error| Outcome::Failed(error.to_string()))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
}

fn labels(row: &Row<'_>) -> Outcome {
    let machine = match azure_machine(row.get("spec")) {
        Ok(machine) => machine,
        Err(failed) => return failed,
    };
    let vm = row.get("vm");
    let shown = vm_state(vm["provisioningState"].as_str(), None);
    let instance = Instance {
        region: vm["location"].as_str().unwrap_or_default().to_owned(),
        zone: zone(&texts(&vm["zones"])),
        instance_type: String::new(),
        ..instance("vm", "m", instance_state(&shown))
    };
    let mut draft = Draft::of(&machine);
    observe(&mut draft, &instance, Timestamp::UNIX_EPOCH);
    let wanted = row.get("annotations")["machine.openshift.io/instance-state"].as_str();
    if wanted.is_some_and(|wanted| wanted != shown) {
        return Outcome::Failed(format!("wanted the state {wanted:?}, found {shown:?}"));
    }
    let on_node = &draft.spec.metadata.labels;
    let on_node = if on_node.is_empty() { Value::Null } else { json!(on_node) };
    Outcome::equal(
        &json!([row.get("labels"), row.get("specLabels")]),
        &json!([draft.labels, on_node]),
    )
}

fn set(row: &Row<'_>) -> Outcome {
    if row.get("error") == true {
        return Outcome::NotApplicable("needs the Azure provider");
    }
    let mut value = json!({});
    if !row.get("spotVMOptions").is_null() {
        value["spotVMOptions"] = row.get("spotVMOptions").clone();
    }
    let spec = match spec(&value) {
        Ok(spec) => spec,
        Err(failed) => return failed,
    };
    // Labels of the Machine: the usual ones, or those of the row, by short names.
    let usual = &row.context()["availabilitySet"]["defaultLabels"];
    let label = |short: &str| {
        let key = format!("machine.openshift.io/cluster-api-{short}");
        match row.value().get("labels") {
            Some(labels) => labels[short].as_str().or(labels[&key].as_str()),
            None => usual[&key].as_str(),
        }
    };
    let cluster = label("cluster").unwrap_or_default();
    let found = availability_set(&spec, &texts(row.get("zones")), cluster, label("machineset"));
    let made = usize::from(found.as_ref().is_some_and(|set| set.ours));
    let name = found.map(|set| set.name).unwrap_or_default();
    Outcome::equal(&json!([row.get("as"), row.get("create")]), &json!([name, made]))
}

fn exists(row: &Row<'_>) -> Outcome {
    let shown = row.get("provisioningState").as_str().map(|word| {
        instance("vm", "m", instance_state(&vm_state(Some(word), Some("PowerState/running"))))
    });
    let status = row.get("http").as_u64().and_then(|status| u16::try_from(status).ok());
    let failed = status.is_some_and(|status| classify("", status) != ErrorClass::NotFound);
    Outcome::equal(
        &json!([row.get("exists"), row.get("error") == true]),
        &json!([exists_as(shown.as_ref()), failed]),
    )
}

fn state(row: &Row<'_>) -> Outcome {
    let found = vm_state(row.get("provisioningState").as_str(), row.get("powerState").as_str());
    Outcome::equal(row.get("state"), &found.into())
}

fn webhook(row: &Row<'_>) -> Outcome {
    let machine = match azure_machine(&json!({"spotVMOptions": row.get("spotVMOptions")})) {
        Ok(machine) => machine,
        Err(failed) => return failed,
    };
    let mut facts = Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH);
    facts.platform = Some(PlatformType::Azure);
    facts.azure_cloud = row.get("cloud").as_str().map(AzureCloud::from);
    let verdict = machine::validate(&machine, None, &facts);
    if !verdict.errors.is_empty() {
        return Outcome::Failed(format!("refused: {:?}", verdict.errors));
    }
    let wanted: Vec<String> = row.get("warning").as_str().map(str::to_owned).into_iter().collect();
    Outcome::equal(&wanted, &verdict.warnings)
}
