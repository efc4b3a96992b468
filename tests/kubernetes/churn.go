// Command churn replaces pods of a Kubernetes API server without pause while clients send requests through a proxy, and fails if a
// request fails or is answered by a pod of another version than was asked for.
//
// Pods are objects without a kubelet; their addresses, in 10.123.0.0/16, are served by this program while they live. A pod ends
// as in a cluster: its endpoint is terminating, and after the grace period it is gone. A pod that crashes is gone before its
// endpoint says so.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type object = map[string]any

var (
	server   = flag.String("server", "https://127.0.0.1:6443", "the API server")
	token    = flag.String("token", "admin-token", "of a user that may write pods, services and resources of Istio")
	edge     = flag.String("edge", "127.0.0.1:8080", "address that the proxy serves")
	pods     = flag.Int("pods", 2000, "pods, in services of 100")
	replaced = flag.Int("replaced", 20, "pods that are replaced in a second")
	crashed  = flag.Float64("crashed", 0.1, "share of them that crash")
	rate     = flag.Int("rate", 500, "requests in a second")
	lasts    = flag.Duration("for", 5*time.Minute, "time under load")
	grace    = flag.Duration("grace", time.Second, "time from the end of an endpoint to that of its pod")
)

const (
	serviceSize = 100
	namespace   = "churn"
	port        = 9080
)

// pod is one life of a pod. When its server is closed, connections to it are refused, and those that it has are reset.
type pod struct {
	name, address, version string
	terminating            bool
	server                 *http.Server
}

// service is a Service with one EndpointSlice of all its pods.
type service struct {
	mu    sync.Mutex
	name  string
	pods  []*pod
	saved bool
}

// world is what the API server is told.
type world struct {
	client   *http.Client
	next     atomic.Int64
	services []*service
	errors   atomic.Int64
}

func main() {
	flag.Parse()
	w := &world{client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true,
	}}}
	w.create()
	if w.errors.Load() > 0 {
		log.Fatal("not created")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	starting, served := context.WithTimeout(ctx, time.Minute)
	w.untilServed(starting)
	served()
	ctx, cancel := context.WithTimeout(ctx, *lasts)
	defer cancel()
	var lives atomic.Int64
	go every(ctx, *replaced, func() {
		w.replace()
		lives.Add(1)
	})
	ok, failed := w.load(ctx)
	fmt.Printf("%d pods, %d replaced, %d requests, %d failed, %d errors of the API server\n",
		*pods, lives.Load(), ok+failed, failed, w.errors.Load())
	if failed > 0 || w.errors.Load() > 0 || ok == 0 {
		os.Exit(1)
	}
}

// every calls do so many times in a second, each call on its own.
func every(ctx context.Context, inSecond int, do func()) {
	ticker := time.NewTicker(time.Second / time.Duration(inSecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			go do()
		}
	}
}

// serve answers at the address of a pod.
func (p *pod) serve() {
	listener, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", p.address, port))
	if err != nil {
		log.Fatal(err)
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, p.version) }),
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateNew {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
		},
	}
	go p.server.Serve(listener)
}

func (w *world) create() {
	w.call("POST", "/api/v1/namespaces", object{"metadata": object{"name": namespace}})
	host, number, err := net.SplitHostPort(*edge)
	if err != nil {
		log.Fatal(err)
	}
	w.istio("Gateway", "edge", object{
		"selector": object{"istio": "ingressgateway"},
		"servers":  []any{object{"bind": host, "hosts": []any{"*"}, "port": object{"name": "http", "protocol": "HTTP", "number": json.Number(number)}}},
	})
	var created sync.WaitGroup
	for at := range (*pods + serviceSize - 1) / serviceSize {
		s := &service{name: fmt.Sprintf("web-%d", at)}
		w.services = append(w.services, s)
		w.call("POST", "/api/v1/namespaces/"+namespace+"/services", object{
			"metadata": object{"name": s.name},
			"spec":     object{"clusterIP": "None", "ports": []any{object{"name": "http", "port": 80, "targetPort": port}}},
		})
		w.istio("DestinationRule", s.name, object{"host": s.name, "subsets": []any{
			object{"name": "v1", "labels": object{"version": "v1"}}, object{"name": "v2", "labels": object{"version": "v2"}},
		}})
		to := func(version string) object {
			return object{
				"match": []any{object{"uri": object{"exact": "/" + version}}},
				"route": []any{object{"destination": object{"host": s.name, "subset": version}}},
			}
		}
		w.istio("VirtualService", s.name, object{
			"hosts": []any{s.name + ".example"}, "gateways": []any{"edge"}, "http": []any{to("v1"), to("v2")},
		})
		created.Go(func() {
			for range min(serviceSize, *pods-at*serviceSize) {
				s.pods = append(s.pods, w.start())
			}
			w.save(s)
		})
	}
	created.Wait()
}

func (w *world) istio(kind, name string, spec object) {
	w.call("POST", "/apis/networking.istio.io/v1/namespaces/"+namespace+"/"+strings.ToLower(kind)+"s", object{
		"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": object{"name": name}, "spec": spec,
	})
}

// start makes a pod that lives.
func (w *world) start() *pod {
	number := w.next.Add(1)
	p := &pod{
		name:    fmt.Sprintf("pod-%d", number),
		address: fmt.Sprintf("10.123.%d.%d", number/250%250, number%250+1),
		version: fmt.Sprintf("v%d", 1+number%2),
	}
	p.serve()
	w.call("POST", "/api/v1/namespaces/"+namespace+"/pods", object{
		"metadata": object{"name": p.name, "labels": object{"app": "web", "version": p.version}},
		"spec": object{
			"nodeName": "node-1", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
			"containers": []any{object{"name": "app", "image": "app"}},
		},
	})
	w.call("PATCH", "/api/v1/namespaces/"+namespace+"/pods/"+p.name+"/status", object{"status": object{
		"phase": "Running", "podIP": p.address, "podIPs": []any{object{"ip": p.address}},
		"conditions": []any{object{"type": "Ready", "status": "True"}},
	}})
	return p
}

// save writes the slice of a service, whose lock the caller holds.
func (w *world) save(s *service) {
	var endpoints []any
	for _, p := range s.pods {
		endpoints = append(endpoints, object{
			"addresses": []any{p.address}, "nodeName": "node-1",
			"conditions": object{"ready": !p.terminating, "serving": true, "terminating": p.terminating},
			"targetRef":  object{"kind": "Pod", "namespace": namespace, "name": p.name},
		})
	}
	method, path := "PUT", "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices"
	if s.saved {
		path += "/" + s.name
	} else {
		method, s.saved = "POST", true
	}
	w.call(method, path, object{
		"metadata":    object{"name": s.name, "labels": object{"kubernetes.io/service-name": s.name}},
		"addressType": "IPv4", "endpoints": endpoints, "ports": []any{object{"name": "http", "port": port, "protocol": "TCP"}},
	})
}

// replace ends a pod and starts another one.
func (w *world) replace() {
	s := w.services[rand.IntN(len(w.services))]
	next := w.start()
	s.mu.Lock()
	var last *pod
	for last == nil || last.terminating || last.version != next.version {
		last = s.pods[rand.IntN(len(s.pods))]
	}
	last.terminating = true
	crashes := rand.Float64() < *crashed
	if crashes {
		last.server.Close()
	}
	s.pods = append(s.pods, next)
	w.save(s)
	s.mu.Unlock()
	if !crashes {
		time.Sleep(*grace)
		last.server.Close()
	}
	w.call("DELETE", "/api/v1/namespaces/"+namespace+"/pods/"+last.name, object{"gracePeriodSeconds": 0})
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, p := range s.pods {
		if p == last {
			s.pods = append(s.pods[:at], s.pods[at+1:]...)
			break
		}
	}
	w.save(s)
}

func (w *world) call(method, path string, body object) {
	bytesOf, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(bytesOf))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := w.client.Do(request)
	if err != nil {
		w.errors.Add(1)
		log.Printf("%s %s: %v", method, path, err)
		return
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		w.errors.Add(1)
		log.Printf("%s %s: %s: %.300s", method, path, response.Status, text)
	}
}

// untilServed waits until every version of every service is answered.
func (w *world) untilServed(ctx context.Context) {
	client := &http.Client{Timeout: 5 * time.Second}
	for _, s := range w.services {
		for _, version := range []string{"v1", "v2"} {
			for w.ask(client, s.name, version) != nil {
				select {
				case <-ctx.Done():
					log.Fatal("not served")
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
	}
}

func (w *world) load(ctx context.Context) (ok, failed int64) {
	kept := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	fresh := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var good, bad atomic.Int64
	var running sync.WaitGroup
	every(ctx, *rate, func() {
		running.Add(1)
		defer running.Done()
		client := kept
		if rand.IntN(4) == 0 {
			client = fresh
		}
		s := w.services[rand.IntN(len(w.services))]
		if err := w.ask(client, s.name, fmt.Sprintf("v%d", 1+rand.IntN(2))); err != nil {
			bad.Add(1)
			log.Print(err)
			return
		}
		good.Add(1)
	})
	running.Wait()
	return good.Load(), bad.Load()
}

func (w *world) ask(client *http.Client, service, version string) error {
	request, err := http.NewRequest("GET", "http://"+*edge+"/"+version, nil)
	if err != nil {
		return err
	}
	request.Host = service + ".example"
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || string(body) != version) {
		err = fmt.Errorf("%s %s: %s %.100s", service, version, response.Status, body)
	}
	return err
}
