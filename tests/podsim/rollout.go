// Command rollout is the workload and the clients of the script rollout.
//
//	rollout server       serves HTTP and WebSocket on port 9080 and gRPC on port 9090, until SIGTERM; finishes what runs
//	rollout job          does nothing for 0.2 s
//	rollout clients -- COMMAND...
//	                     sends requests of all kinds while COMMAND runs, and fails if one of them fails
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	messages = 5
	pause    = 50 * time.Millisecond
)

func main() {
	switch verb := os.Args[1]; verb {
	case "server":
		serve()
	case "job":
		time.Sleep(200 * time.Millisecond)
	case "clients":
		clients(os.Args[2:])
	default:
		log.Fatalf("server, job or clients, not %s", verb)
	}
}

func serve() {
	var upgraded sync.WaitGroup
	servers := []*http.Server{
		{Addr: ":9080", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				fmt.Fprintln(w, "ok")
				return
			}
			conn, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			upgraded.Go(func() {
				defer conn.Close()
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
				_, _ = io.Copy(conn, buffered)
			})
		})},
		{Addr: ":9090", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(http.StatusOK)
			out := http.NewResponseController(w)
			_ = out.Flush()
			for buffer := make([]byte, 1024); ; {
				n, err := r.Body.Read(buffer)
				_, _ = w.Write(buffer[:n])
				_ = out.Flush()
				if err != nil {
					break
				}
			}
			w.Header().Set("Grpc-Status", "0")
		})},
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	for _, server := range servers {
		server.Protocols = protocols(true, true)
		go func() {
			if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				log.Fatal(err)
			}
		}()
	}
	<-stop.Done()
	var ended sync.WaitGroup
	for _, server := range servers {
		ended.Go(func() { _ = server.Shutdown(context.Background()) })
	}
	ended.Wait()
	upgraded.Wait()
}

func protocols(http1, http2 bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// load is what the clients share.
type load struct {
	url   string // of the EndpointSlices
	token string
	lag   time.Duration
	ports map[string]string // of the Service, by protocol

	mu        sync.Mutex
	endpoints map[string][]string // by name of the port
	counts    map[string]*[2]atomic.Int64
	over      atomic.Bool
	log       *log.Logger
}

func clients(args []string) {
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	server := flags.String("server", "https://127.0.0.1:16443", "the API server")
	token := flags.String("token", "admin-token", "of a user that may list EndpointSlices")
	namespace := flags.String("namespace", "shop", "of the Service")
	service := flags.String("service", "reviews", "the Service")
	http := flags.String("http", "http", "name of the port for HTTP and WebSocket")
	grpc := flags.String("grpc", "grpc", "name of the port for gRPC")
	lag := flags.Duration("lag", 300*time.Millisecond, "time until clients know of a change of the endpoints")
	_ = flags.Parse(args)
	l := &load{
		url:       fmt.Sprintf("%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector=kubernetes.io/service-name=%s", *server, *namespace, *service),
		token:     *token,
		lag:       *lag,
		ports:     map[string]string{"http": *http, "grpc": *grpc},
		endpoints: map[string][]string{},
		counts:    map[string]*[2]atomic.Int64{},
		log:       log.New(os.Stderr, "", log.Ltime|log.Lmicroseconds),
	}
	go l.follow()
	for !l.isReady() {
		time.Sleep(20 * time.Millisecond)
	}
	var running sync.WaitGroup
	for name, kind := range l.kinds() {
		l.counts[name] = &[2]atomic.Int64{}
		for range 4 {
			call := kind()
			running.Go(func() { l.repeat(name, call) })
		}
	}
	time.Sleep(time.Second)
	command := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	err := command.Run()
	time.Sleep(time.Second)
	l.over.Store(true)
	running.Wait()
	failed := int64(0)
	for name, count := range l.counts {
		fmt.Printf("%-22s %6d ok, %d failed\n", name, count[0].Load(), count[1].Load())
		failed += count[1].Load()
	}
	if err != nil || failed > 0 {
		log.Fatalf("%d failed; %s: %v", failed, flags.Arg(0), err)
	}
}

func (l *load) repeat(name string, call func() error) {
	for !l.over.Load() {
		if err := call(); err != nil {
			l.counts[name][1].Add(1)
			l.log.Printf("%s: %v", name, err)
		} else {
			l.counts[name][0].Add(1)
		}
		time.Sleep(pause / 2)
	}
}

// kinds makes clients; each has connections of its own.
func (l *load) kinds() map[string]func() func() error {
	get := func(transport *http.Transport) func() error {
		transport.DialContext = l.dialer("http")
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		return func() error { return get(client) }
	}
	return map[string]func() func() error{
		"HTTP/1.1, kept": func() func() error { return get(&http.Transport{Protocols: protocols(true, false)}) },
		"HTTP/1.1, new": func() func() error {
			return get(&http.Transport{Protocols: protocols(true, false), DisableKeepAlives: true})
		},
		"HTTP/2, kept": func() func() error { return get(&http.Transport{Protocols: protocols(false, true)}) },
		"HTTP/2, new": func() func() error {
			return func() error {
				transport := &http.Transport{Protocols: protocols(false, true)}
				defer transport.CloseIdleConnections()
				return get(transport)()
			}
		},
		"gRPC streams": func() func() error {
			transport := &http.Transport{Protocols: protocols(false, true), DialContext: l.dialer("grpc")}
			return func() error { return stream(transport) }
		},
		"WebSocket": func() func() error { return l.webSocket },
	}
}

func get(client *http.Client) error {
	response, err := client.Get("http://reviews.shop/")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.100s", response.Status, body)
	}
	return err
}

// stream exchanges messages over a gRPC stream. Its request begins with nothing, so that it can be sent again unread, as
// gRPC clients do.
func stream(transport *http.Transport) error {
	var last *io.PipeWriter
	body := func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		last = writer
		return reader, nil
	}
	first, _ := body()
	request, err := http.NewRequest(http.MethodPost, "http://reviews.shop/grpc/stream", first)
	if err != nil {
		return err
	}
	request.GetBody = body
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Grpc-Status") != "" {
		return fmt.Errorf("%s, grpc-status %q", response.Status, response.Header.Get("Grpc-Status"))
	}
	message := binary.BigEndian.AppendUint32([]byte{0}, 4)
	message = append(message, "ping"...)
	for range messages {
		if _, err := last.Write(message); err != nil {
			return err
		}
		if _, err := io.ReadFull(response.Body, make([]byte, len(message))); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	last.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		return err
	}
	if status := response.Trailer.Get("Grpc-Status"); status != "0" {
		return fmt.Errorf("grpc-status %q", status)
	}
	return nil
}

func (l *load) webSocket() error {
	conn, err := l.dialer("http")(context.Background(), "tcp", "")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: reviews.shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	buffered := bufio.NewReader(conn)
	response, err := http.ReadResponse(buffered, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return errors.New(response.Status)
	}
	for range messages {
		fmt.Fprintln(conn, "ping")
		if _, err := buffered.ReadString('\n'); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// dialer connects to a ready endpoint, as kube-proxy does.
func (l *load) dialer(protocol string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		l.mu.Lock()
		endpoints := slices.Clone(l.endpoints[l.ports[protocol]])
		l.mu.Unlock()
		if len(endpoints) == 0 {
			return nil, errors.New("no endpoint is ready")
		}
		dialer := net.Dialer{Timeout: 5 * time.Second}
		return dialer.DialContext(ctx, "tcp", endpoints[rand.IntN(len(endpoints))])
	}
}

func (l *load) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.endpoints[l.ports["http"]]) > 0 && len(l.endpoints[l.ports["grpc"]]) > 0
}

// follow keeps the ready endpoints.
func (l *load) follow() {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for ; ; time.Sleep(20 * time.Millisecond) {
		found, err := l.list(client)
		if err != nil {
			l.log.Printf("EndpointSlices: %v", err)
			continue
		}
		time.AfterFunc(l.lag, func() {
			l.mu.Lock()
			l.endpoints = found
			l.mu.Unlock()
		})
	}
}

func (l *load) list(client *http.Client) (map[string][]string, error) {
	request, err := http.NewRequest(http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		Items []struct {
			Ports []struct {
				Name string
				Port int
			}
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready bool }
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, slice := range list.Items {
		for _, port := range slice.Ports {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready {
					found[port.Name] = append(found[port.Name], fmt.Sprintf("%s:%d", endpoint.Addresses[0], port.Port))
				}
			}
		}
	}
	return found, nil
}
