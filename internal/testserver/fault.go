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

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// A fault is one kind of misbehaviour. It replaces a correct response.
type fault struct {
	name string
	says string
	// on lists the transports of the fault, or nil for all.
	on []string
	// reply sends the faulty response.
	reply func(w wire, a *right)
	// start is called before the server starts.
	start func(s *server)
}

// right is the correct response to a request, and the request.
type right struct {
	id, params, answer []byte
	method             string
	ctx                context.Context
}

// with returns the response with another result.
func (a *right) with(result string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `,"result":` + result + `}`)
}

// result returns the result of the response.
func (a *right) result() string {
	if r := rawjson.Field(a.answer, "result"); r != nil {
		return string(r)
	}
	return "{}"
}

// extra returns the response with an additional member in its result.
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

// wire sends the bytes of a fault over any transport.
type wire interface {
	message(b []byte) // sends bytes framed as a message
	raw(b []byte)     // sends bytes without framing: half a line, half an event
	drop()            // closes the connection
}

// moments lists the methods at which a fault can occur.
var moments = map[string][]string{
	"connect": {"server/discover", "initialize"},
	"list":    {"tools/list"},
	"call":    {"tools/call"},
}

// chosen is the fault of --fault and the moment at which it occurs.
type chosen struct {
	*fault
	at string // "" for always
}

// choose parses NAME or NAME@MOMENT.
func choose(text string) (*chosen, error) {
	name, at, when := strings.Cut(text, "@")
	if _, ok := moments[at]; when && !ok {
		return nil, fmt.Errorf("testserver: --fault: unknown moment %q; use connect, list or call", at)
	}
	for _, f := range append(faults(), bombs()...) {
		if f.name == name {
			return &chosen{&f, at}, nil
		}
	}
	return nil, fmt.Errorf("testserver: no fault %q; --list-faults names them", name)
}

// meets reports whether the fault replaces the response to this method.
func (c *chosen) meets(method string) bool {
	if c == nil || c.reply == nil {
		return false
	}
	if c.at == "" {
		return !strings.HasPrefix(method, "notifications/")
	}
	return slices.Contains(moments[c.at], method)
}

// Faults returns the names of all faults for a transport (stdio, http, sse, ws, jsonrpc), or all names if it
// is "".
func Faults(kind string) []string { return namesOf(faults(), kind) }

// Bombs returns the names of the faults that exceed any memory. The argument is the same as for [Faults].
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

// hostile wraps the stream of a server and applies a fault.
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

// Recv records the requests that the fault replaces.
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

// Send passes responses to recorded requests to the fault.
func (h *hostile) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	var a *right
	if m.Method == "" {
		h.mu.Lock()
		id := string(rawjson.Field(m.Body, "id"))
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

// pipeWire writes to stdout.
type pipeWire struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *pipeWire) message(b []byte) { p.raw(append(bytes.Clone(b), '\n')) }

func (p *pipeWire) raw(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(b) // fails if the client has gone
}

func (p *pipeWire) drop() { os.Exit(3) }

// pause waits for d. It reports false if the client's request ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
