package testserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
)

// A fault is one way to misbehave. It takes the place of an answer that would
// have been right.
type fault struct {
	name string
	says string
	// on names the transports it is for; nil: all of them.
	on []string
	// reply answers in place of the server.
	reply func(w wire, a *right)
	// start is called before anything is served.
	start func(s *server)
	// ends says that the process ends by itself for no fault of a client.
	lingers bool
}

// right is the answer that is due, and what it answers.
type right struct {
	id, params, answer []byte
	method             string
	ctx                context.Context
}

// with is the answer with another result.
func (a *right) with(result string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `,"result":` + result + `}`)
}

// result is that of the answer.
func (a *right) result() string {
	if r := jsonrpc.Field(a.answer, "result"); r != nil {
		return string(r)
	}
	return "{}"
}

// extra is the answer with a member more in its result.
func (a *right) extra(member string) []byte {
	return a.with("{" + member + string(rest([]byte(a.result()))))
}

func rest(object []byte) []byte {
	inside := bytes.TrimSpace(object[1:])
	if string(inside) == "}" {
		return inside
	}
	return append([]byte(","), inside...)
}

// wire is how a fault reaches the client over whatever transport.
type wire interface {
	message(b []byte) // framed as a message, whatever it is
	raw(b []byte)     // not framed: half a line, half an event
	drop()            // ends the connection without a word
}

// The moments at which a fault can be met.
var moments = map[string][]string{
	"connect": {"server/discover", "initialize"},
	"list":    {"tools/list"},
	"call":    {"tools/call"},
}

// chosen is the fault of --fault and when it is met.
type chosen struct {
	*fault
	at string // "" is always
}

// choose reads NAME or NAME@MOMENT.
func choose(text string) (*chosen, error) {
	name, at, when := strings.Cut(text, "@")
	if _, ok := moments[at]; when && !ok {
		return nil, fmt.Errorf("testserver: --fault: no moment %q; connect, list or call", at)
	}
	for _, f := range append(faults(), bombs()...) {
		if f.name == name {
			return &chosen{&f, at}, nil
		}
	}
	return nil, fmt.Errorf("testserver: no fault %q; --list-faults names them", name)
}

// meets reports whether the fault takes the answer to this method.
func (c *chosen) meets(method string) bool {
	if c == nil || c.reply == nil {
		return false
	}
	if c.at == "" {
		return !strings.HasPrefix(method, "notifications/")
	}
	return slices.Contains(moments[c.at], method)
}

// Faults returns the names of all faults for a transport (stdio, http, sse, ws,
// jsonrpc), of all where it is "".
func Faults(kind string) []string { return namesOf(faults(), kind) }

// Bombs returns the names of the faults whose sizes no memory holds, as [Faults]
// does.
func Bombs(kind string) []string { return namesOf(bombs(), kind) }

func namesOf(faults []fault, kind string) []string {
	var names []string
	for _, f := range faults {
		if kind == "" || f.on == nil || slices.Contains(f.on, kind) {
			names = append(names, f.name)
		}
	}
	return names
}

func listFaults(w io.Writer) error {
	for _, f := range append(faults(), bombs()...) {
		on := "all"
		if f.on != nil {
			on = strings.Join(f.on, ",")
		}
		if _, err := fmt.Fprintf(w, "%-24s %-14s %s\n", f.name, on, f.says); err != nil {
			return err
		}
	}
	return nil
}

// hostile stands between a server and a stream, and misbehaves.
type hostile struct {
	jsonrpc.Stream
	fault *chosen
	wire  wire

	mu   sync.Mutex
	open map[string]*right
}

func newHostile(inner jsonrpc.Stream, f *chosen, w wire) *hostile {
	return &hostile{Stream: inner, fault: f, wire: w, open: map[string]*right{}}
}

// Recv notes what is asked.
func (h *hostile) Recv(ctx context.Context) ([]byte, error) {
	b, err := h.Stream.Recv(ctx)
	var m jsonrpc.Message
	if err == nil && jsonrpc.Parse(b, &m) == nil && m.IsRequest() && h.fault.meets(m.Method) {
		h.mu.Lock()
		h.open[string(m.ID)] = &right{id: bytes.Clone(m.ID), params: bytes.Clone(m.Params), method: m.Method, ctx: ctx}
		h.mu.Unlock()
	}
	return b, err
}

// Send lets the fault have the answers that are its own.
func (h *hostile) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	var a *right
	if m.Method == "" {
		h.mu.Lock()
		id := string(jsonrpc.Field(m.Body, "id"))
		a = h.open[id]
		delete(h.open, id)
		h.mu.Unlock()
	}
	if a == nil {
		return h.Stream.Send(ctx, m)
	}
	a.answer = bytes.Clone(m.Body)
	h.fault.reply(h.wire, a)
	return nil
}

// pipeWire is stdout.
type pipeWire struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *pipeWire) message(b []byte) { p.raw(append(bytes.Clone(b), '\n')) }

func (p *pipeWire) raw(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(b) // who is gone sees nothing
}

func (p *pipeWire) drop() { os.Exit(3) }

// pause waits as long as the client does.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
