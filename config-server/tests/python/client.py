"""The Python client of Kubernetes against a config server: arguments are its kubeconfig.

Each function is a test; the first one that fails ends the run with its traceback.
"""

import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP, VERSION, PLURAL = "flomesh.io", "v1alpha1", "globaltrafficpolicies"
NAMESPACE = "python"
WHERE = (GROUP, VERSION, NAMESPACE, PLURAL)


def policy(name, **labels):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {"lbType": "Locality"},
    }


def refused(code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == code, error
        return error
    raise AssertionError(f"no {code}")


def objects_are_created_read_replaced_and_deleted(api):
    objects = client.CustomObjectsApi(api)
    made = objects.create_namespaced_custom_object(*WHERE, policy("web", app="web"))
    assert made["metadata"]["uid"] and made["metadata"]["generation"] == 1
    refused(409, objects.create_namespaced_custom_object, *WHERE, policy("web"))
    read = objects.get_namespaced_custom_object(*WHERE, "web")
    assert read == made
    read["spec"]["lbType"] = "ActiveActive"
    replaced = objects.replace_namespaced_custom_object(*WHERE, "web", read)
    assert replaced["metadata"]["generation"] == 2
    refused(409, objects.replace_namespaced_custom_object, *WHERE, "web", read)
    deleted = objects.delete_namespaced_custom_object(*WHERE, "web")
    assert deleted["status"] == "Success", deleted
    refused(404, objects.get_namespaced_custom_object, *WHERE, "web")


def objects_are_patched_in_each_way(api):
    objects = client.CustomObjectsApi(api)
    objects.create_namespaced_custom_object(*WHERE, policy("web"))
    patch = objects.patch_namespaced_custom_object
    merged = patch(*WHERE, "web", {"spec": {"lbType": "ActiveActive"}}, _content_type="application/merge-patch+json")
    assert merged["spec"]["lbType"] == "ActiveActive"
    steps = [{"op": "replace", "path": "/spec/lbType", "value": "Locality"}]
    patched = patch(*WHERE, "web", steps, _content_type="application/json-patch+json")
    assert patched["spec"]["lbType"] == "Locality"
    applied = patch(
        *WHERE,
        "web",
        {**policy("web"), "spec": {"lbType": "Locality"}},
        field_manager="py",
        force=True,
        _content_type="application/apply-patch+yaml",
    )
    managers = [entry["manager"] for entry in applied["metadata"]["managedFields"]]
    assert "py" in managers, managers
    other = {**policy("web"), "spec": {"lbType": "FailOver"}}
    error = refused(
        409, patch, *WHERE, "web", other, field_manager="other", _content_type="application/apply-patch+yaml"
    )
    assert 'conflict with \\"py\\"' in error.body, error.body


def status_is_written_by_itself(api):
    objects = client.CustomObjectsApi(api)
    before = objects.create_namespaced_custom_object(*WHERE, policy("web"))
    condition = {
        "type": "Programmed",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"conditions": [condition]}, "spec": {"lbType": "ActiveActive"}}
    after = objects.patch_namespaced_custom_object_status(
        *WHERE, "web", status, _content_type="application/merge-patch+json"
    )
    assert after["status"]["conditions"][0]["type"] == "Programmed", after
    assert after["spec"] == before["spec"] and after["metadata"]["generation"] == 1
    again = objects.replace_namespaced_custom_object_status(*WHERE, "web", {**after, "status": {"conditions": []}})
    assert again["status"] == {"conditions": []}, again
    assert objects.get_namespaced_custom_object_status(*WHERE, "web") == again


def lists_are_paged_and_selected(api):
    objects = client.CustomObjectsApi(api)
    for number in range(5):
        objects.create_namespaced_custom_object(*WHERE, policy(f"p{number}", parity=str(number % 2)))
    names, token, pages = [], None, 0
    while True:
        page = objects.list_namespaced_custom_object(*WHERE, limit=2, _continue=token)
        names += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        token = page["metadata"].get("continue")
        if not token:
            break
    assert (names, pages) == ([f"p{number}" for number in range(5)], 3)
    odd = objects.list_namespaced_custom_object(*WHERE, label_selector="parity=1")["items"]
    assert [item["metadata"]["name"] for item in odd] == ["p1", "p3"]
    one = objects.list_namespaced_custom_object(*WHERE, field_selector="metadata.name=p2")["items"]
    assert len(one) == 1
    everywhere = objects.list_cluster_custom_object(GROUP, VERSION, PLURAL)["items"]
    assert len(everywhere) == 5
    gone = objects.delete_collection_namespaced_custom_object(*WHERE, label_selector="parity=1")
    assert gone["status"] == "Success"
    assert len(objects.list_namespaced_custom_object(*WHERE)["items"]) == 3


def watches_resume_where_they_ended(api):
    objects = client.CustomObjectsApi(api)
    start = objects.list_namespaced_custom_object(*WHERE)["metadata"]["resourceVersion"]
    for name in ("a", "b"):
        objects.create_namespaced_custom_object(*WHERE, policy(name))
    stream = watch.Watch()
    seen = []
    for event in stream.stream(
        objects.list_namespaced_custom_object, *WHERE, resource_version=start, timeout_seconds=20
    ):
        seen.append((event["type"], event["object"]["metadata"]["name"]))
        last = event["object"]["metadata"]["resourceVersion"]
        if len(seen) == 2:
            stream.stop()
    assert seen == [("ADDED", "a"), ("ADDED", "b")], seen
    objects.delete_namespaced_custom_object(*WHERE, "a")
    stream = watch.Watch()
    for event in stream.stream(
        objects.list_namespaced_custom_object, *WHERE, resource_version=last, timeout_seconds=20
    ):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "a"), event
        stream.stop()
    events = list(
        watch.Watch().stream(
            objects.list_namespaced_custom_object, *WHERE, resource_version=start, timeout_seconds=1
        )
    )
    # A server that writes status modifies them as well.
    types = [event["type"] for event in events if event["type"] != "MODIFIED"]
    assert types == ["ADDED", "ADDED", "DELETED"], types


def dynamic_client_finds_and_changes_resources(api):
    found = dynamic.DynamicClient(api)
    services = found.resources.get(api_version="networking.istio.io/v1", kind="VirtualService")
    assert services.namespaced and "vs" in services.short_names, services
    body = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "shop"},
        "spec": {"hosts": ["shop.example"], "http": [{"route": [{"destination": {"host": "shop"}}]}]},
    }
    made = services.create(body=body, namespace=NAMESPACE)
    assert made.spec.hosts == ["shop.example"]
    applied = services.server_side_apply(
        body={**body, "spec": {**body["spec"], "hosts": ["a.example"]}},
        name="shop",
        namespace=NAMESPACE,
        field_manager="py",
        force_conflicts=True,
    )
    assert applied.spec.hosts == ["a.example"], applied
    patched = services.patch(
        body={"metadata": {"labels": {"a": "b"}}},
        name="shop",
        namespace=NAMESPACE,
        content_type="application/merge-patch+json",
    )
    assert patched.metadata.labels.a == "b"
    assert len(services.get(namespace=NAMESPACE, label_selector="a=b").items) == 1
    for event in services.watch(namespace=NAMESPACE, timeout=20):
        assert event["type"] == "ADDED", event
        break
    services.delete(name="shop", namespace=NAMESPACE)
    assert services.get(namespace=NAMESPACE).items == []


def typed_clients_work(api):
    core = client.CoreV1Api(api)
    core.create_namespaced_secret(
        NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name="tls"), string_data={"key": "value"})
    )
    secret = core.read_namespaced_secret("tls", NAMESPACE)
    assert secret.data == {"key": "dmFsdWU="}, secret.data
    service = client.V1Service(
        metadata=client.V1ObjectMeta(name="shop"),
        spec=client.V1ServiceSpec(ports=[client.V1ServicePort(port=80, name="http")]),
    )
    core.create_namespaced_service(NAMESPACE, service)
    core.patch_namespaced_service("shop", NAMESPACE, {"spec": {"ports": [{"port": 81, "name": "more"}]}})
    ports = core.read_namespaced_service("shop", NAMESPACE).spec.ports
    assert sorted(port.port for port in ports) == [80, 81], ports
    core.delete_collection_namespaced_service(NAMESPACE)
    assert core.list_namespaced_service(NAMESPACE).items == []
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="get", resource="secrets", namespace="x")
        )
    )
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed


TESTS = [
    objects_are_created_read_replaced_and_deleted,
    objects_are_patched_in_each_way,
    status_is_written_by_itself,
    lists_are_paged_and_selected,
    watches_resume_where_they_ended,
    dynamic_client_finds_and_changes_resources,
    typed_clients_work,
]


def main():
    api = config.new_client_from_config(sys.argv[1])
    for test in TESTS:
        print(test.__name__, flush=True)
        test(api)
        client.CustomObjectsApi(api).delete_collection_namespaced_custom_object(*WHERE)


main()
