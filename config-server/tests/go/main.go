// Judge is a program with the Go client of Kubernetes, which sends the kinds that Kubernetes has itself in protobuf. It does
// with a config server what controllers do, and fails where the server answers otherwise than Kubernetes does.
//
//	judge KUBECONFIG
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const namespace = "judged"

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check("kubeconfig", err)
	// As clients of generated types do since 0.32.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	objects(ctx, config)
	election(ctx, config)
	fmt.Println("ok")
}

// Creates, updates, patches and deletes an object of each kind.
func objects(ctx context.Context, config *rest.Config) {
	client, err := core.NewForConfig(config)
	check("client", err)
	own, err := client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta(namespace)}, metav1.CreateOptions{})
	check("create namespace", err)
	expect("label of a namespace", own.Labels["kubernetes.io/metadata.name"], namespace)

	services := client.Services(namespace)
	service := &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
			{Name: "named", Port: 81, TargetPort: intstr.FromString("http")},
		},
	}}
	service, err = services.Create(ctx, service, metav1.CreateOptions{})
	check("create service", err)
	expect("target port", service.Spec.Ports[1].TargetPort.String(), "http")
	expect("type of a service", string(service.Spec.Type), "ClusterIP")
	old := service.DeepCopy()
	service.Spec.Ports[0].Port = 8080
	service, err = services.Update(ctx, service, metav1.UpdateOptions{})
	check("update service", err)
	same, err := services.Update(ctx, service, metav1.UpdateOptions{})
	check("update service without a change", err)
	expect("revision without a change", same.ResourceVersion, service.ResourceVersion)
	_, err = services.Update(ctx, old, metav1.UpdateOptions{})
	expect("conflict", fmt.Sprint(errors.IsConflict(err)), "true")
	found, err := services.List(ctx, metav1.ListOptions{FieldSelector: "spec.type=ClusterIP"})
	check("list services by type", err)
	expect("services", fmt.Sprint(len(found.Items)), "1")

	secrets := client.Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: meta("key"), Data: map[string][]byte{"a": {0, 255}}, StringData: map[string]string{"b": "c"}}
	secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	check("create secret", err)
	expect("secret", fmt.Sprintf("%v %s", secret.Data, secret.Type), "map[a:[0 255] b:[99]] Opaque")

	endpoints, err := discovery.NewForConfig(config)
	check("client", err)
	slices := endpoints.EndpointSlices(namespace)
	ready, port := false, int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  meta("web"),
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Port: &port}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: service.UID}}
	slice, err = slices.Create(ctx, slice, metav1.CreateOptions{})
	check("create endpoint slice", err)
	expect("ready", fmt.Sprint(*slice.Endpoints[0].Conditions.Ready), "false")

	other := "other"
	wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &other}}
	err = services.Delete(ctx, "web", wrong)
	expect("precondition", fmt.Sprint(errors.IsConflict(err)), "true")
	background := metav1.DeletePropagationBackground
	check("delete service", services.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &background}))
	for try := 0; ; try++ {
		if _, err = slices.Get(ctx, "web", metav1.GetOptions{}); errors.IsNotFound(err) {
			break
		}
		check("dependent", ctx.Err())
		time.Sleep(20 * time.Millisecond)
	}
	check("delete secrets", secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// Elects a leader, which gives up its lease, and another one after it.
func election(ctx context.Context, config *rest.Config) {
	client, err := coordination.NewForConfig(config)
	check("client", err)
	for _, name := range []string{"first", "second"} {
		held, stop := context.WithCancel(ctx)
		leaderelection.RunOrDie(held, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration:   3 * time.Second,
			RenewDeadline:   2 * time.Second,
			RetryPeriod:     100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					// Long enough to renew it.
					time.Sleep(300 * time.Millisecond)
					lease, err := client.Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
					check("get lease", err)
					expect("holder", *lease.Spec.HolderIdentity, name)
					expect("renewed", fmt.Sprint(lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)), "true")
					stop()
				},
				OnStoppedLeading: func() {},
			},
		})
		check(name, ctx.Err())
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name}
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, strings.TrimSpace(err.Error()))
		os.Exit(1)
	}
}

func expect(what, found, expected string) {
	if found != expected {
		check(what, fmt.Errorf("%q instead of %q", found, expected))
	}
}
