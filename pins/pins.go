// Package pins compares the tools of MCP servers with the definitions that they had when they were first used. A server
// that changes a tool after a person has accepted it could otherwise make an agent do something else.
//
//	server ─► its tools ─► Pins.Check ─► changed tools are not offered (catalog)
//	a call ─► Pins.CheckCall ─► a tool that changed since the run began is not called
//
// The rules:
//
//   - The first use of a server pins its command or address and all its tools, under the server's identity.
//   - A change of any field of a definition disables all tools of the server until a person accepts it
//     (policy.pins.changed: ask), or is logged (warn). So is a change of command or address. The order of keys, and of
//     the members of required, enum and type, does not count.
//   - The first use of a new tool asks a person, and an allowed call pins it (policy.pins.new: ask), or it is pinned
//     without asking (allow). If a pinned tool is gone, a new one with its description or its arguments may be the same
//     under another name: it is not offered until it is accepted. Other new tools follow policy.pins.new.
//   - A tool that is gone stays pinned.
//
// Package store keeps the pins. Package host decides which servers have pins.
package pins

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
)

// Servers describes the configured servers.
type Servers interface {
	// HasPins reports whether the tools of a server are pinned.
	HasPins(server string) bool
	// PinKeys returns the key of a server's pins, and the key that earlier releases used.
	PinKeys(server string) (key, old string)
	// Definition returns the command or address of a server as JSON, without secrets.
	Definition(server string) json.RawMessage
	// Tools returns the tools that a server has now. Errors: not_found, and errors of connecting.
	Tools(ctx context.Context, server string) ([]tenon.Tool, error)
}

// Config contains the dependencies of [Pins]. All fields are required.
type Config struct {
	Store   store.Pins
	Servers Servers
	Rules   policy.Pins
	Now     func() time.Time
}

// Pins compares servers with their pins. It is safe for concurrent use.
type Pins struct {
	cfg  Config
	mu   sync.Mutex
	seen map[string]Result // by server name
}

// New returns the pins in a store.
func New(cfg Config) *Pins { return &Pins{cfg: cfg, seen: map[string]Result{}} }

// Result is the comparison of a list of tools with the pins. The zero value has no differences.
type Result struct {
	tools   []tenon.Tool
	changed map[string]string // remote name, or "" for the server → reason
	// New contains the new tools that are not pinned: remote name → digest of the definition.
	New map[string]string
}

// Blocked returns the tools that are not offered, with the reasons: remote name → reason. The key "" means all tools of
// the server.
func (r *Result) Blocked() map[string]string {
	if r.changed[""] != "" {
		return r.changed
	}
	for _, name := range slices.Sorted(maps.Keys(r.changed)) {
		if r.changed[name] == definitionChanged {
			all := maps.Clone(r.changed)
			all[""] = fmt.Sprintf("the definition of '%s', a tool of the same server, has changed since it was pinned",
				tenon.Visible(name))
			return all
		}
	}
	return r.changed
}

// Check compares a server's tools with its pins. If the server is used for the first time, Check pins them. It reads
// the store only if the list differs from the last one, or if the last comparison found differences. Errors: protocol
// (a definition), store.
func (p *Pins) Check(ctx context.Context, server string, tools []tenon.Tool) (Result, error) {
	if !p.cfg.Servers.HasPins(server) {
		return Result{}, nil
	}
	p.mu.Lock()
	last, ok := p.seen[server]
	p.mu.Unlock()
	if ok && len(last.changed) == 0 && len(last.New) == 0 && tenon.SameTools(last.tools, tools) {
		return last, nil
	}
	now, err := p.compare(ctx, server, tools)
	if err != nil {
		return Result{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[server] = now
	return now, nil
}

// compare compares a server's tools with the pins in the store.
func (p *Pins) compare(ctx context.Context, server string, tools []tenon.Tool) (Result, error) {
	key, _ := p.cfg.Servers.PinKeys(server)
	held := Result{tools: tools}
	own, err := define("", p.cfg.Servers.Definition(server))
	if err != nil {
		return held, err
	}
	all := rawDigest(tools)
	pin, err := p.cfg.Store.Pin(ctx, key, "")
	known := err == nil
	switch {
	case known && pin.Raw == all && pin.Digest == own.digest:
		return held, nil // identical bytes
	case !known && tenon.ErrorCode(err) != tenon.CodeNotFound:
		return held, err
	}
	byName, err := p.pinsOf(ctx, server)
	if err != nil {
		return held, err
	}
	pin, known = byName[""]
	now, err := definitionsNow(own, tools)
	if err != nil {
		return held, err
	}
	gone, err := p.gone(ctx, key, now, byName)
	if err != nil {
		return held, err
	}
	held.changed = changes(now, byName, gone)
	var put []store.Pin
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch _, ok := byName[name]; {
		case name == "" || ok || held.changed[name] != "":
		case len(byName) > 0 && p.cfg.Rules.AskNew():
			if held.New == nil {
				held.New = map[string]string{}
			}
			held.New[name] = now[name].digest
		default:
			put = append(put, p.pin(key, now[name], ""))
		}
	}
	if len(held.changed) == 0 && len(held.New) == 0 {
		own := p.pin(key, own, all)
		if known { // another order, or fewer tools; store the new bytes for a fast comparison next time
			own.By, own.Created = pin.By, pin.Created
			err = p.cfg.Store.PutPins(ctx, []store.Pin{own}, false)
		} else {
			put = append(put, own)
		}
	}
	if err == nil && len(put) > 0 {
		err = p.cfg.Store.PutPins(ctx, put, true)
	}
	return held, err
}

// pinsOf returns the pins of a server by remote name. It moves pins that an earlier release stored under the server's
// name.
func (p *Pins) pinsOf(ctx context.Context, server string) (map[string]store.Pin, error) {
	key, old := p.cfg.Servers.PinKeys(server)
	list, err := p.cfg.Store.Pins(ctx, key)
	if err == nil && len(list) == 0 {
		list, err = p.moveTo(ctx, key, old)
	}
	byName := make(map[string]store.Pin, len(list))
	for _, p := range list {
		byName[p.Remote] = p
	}
	return byName, err
}

// moveTo moves the pins of one key to another key and returns them.
func (p *Pins) moveTo(ctx context.Context, key, from string) ([]store.Pin, error) {
	list, err := p.cfg.Store.Pins(ctx, from)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	for i := range list {
		if list[i], err = p.cfg.Store.Pin(ctx, from, list[i].Remote); err != nil {
			return nil, err
		}
		list[i].Server = key
	}
	if err := p.cfg.Store.PutPins(ctx, list, false); err != nil {
		return nil, err
	}
	if err := p.cfg.Store.DeletePins(ctx, from); tenon.ErrorCode(err) != tenon.CodeNotFound {
		return list, err
	}
	return list, nil
}

// definitionsNow returns the current definitions by remote name. The definition of the server itself has the name "".
func definitionsNow(own definition, tools []tenon.Tool) (map[string]definition, error) {
	defs, err := definitions(tools)
	if err != nil {
		return nil, err
	}
	now := map[string]definition{"": own}
	for _, d := range defs {
		now[d.remote] = d
	}
	return now, nil
}

// changes returns, by remote name, the reasons why definitions differ from their pins. The name of the server itself is
// "". It omits new tools that may be pinned. gone has the pinned tools that a new one may be.
func changes(now map[string]definition, kept map[string]store.Pin, gone *renames) map[string]string {
	changed := map[string]string{}
	own, known := kept[""]
	moved := known && own.Digest != now[""].digest
	for name, d := range now {
		switch p, ok := kept[name]; {
		case moved:
			changed[name] = serverChanged
		case ok && p.Digest != d.digest:
			changed[name] = definitionChanged
		case !ok && name != "":
			if old, likely := gone.of(d); likely {
				changed[name] = fmt.Sprintf("it is new, and '%s', a tool that was pinned, is gone: it may be that one "+
					"under another name", tenon.Visible(old))
			}
		}
	}
	return changed
}

// The reasons for a difference.
const (
	serverChanged     = "the command or address of its server has changed since it was pinned"
	definitionChanged = "its definition has changed since it was pinned"

	// NewReason is the reason for asking about a new tool.
	NewReason = "the tool is new: its server did not have it when it was pinned"
)

// firstUse is the author of pins that were made at the first use, without a person.
const firstUse = "first use"

func (p *Pins) pin(key string, d definition, raw string) store.Pin {
	return store.Pin{Server: key, Remote: d.remote, Raw: raw, Digest: d.digest, Definition: d.json, By: firstUse,
		Created: p.cfg.Now()}
}

// BlockedError describes the tools of a server that are not offered; see [Result.Blocked]. It returns nil if there
// are none.
func BlockedError(server string, changed map[string]string) error {
	if len(changed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(changed))
	why := changed[names[0]]
	if names = slices.DeleteFunc(names, func(n string) bool { return n == "" }); len(names) == 0 {
		names = []string{"all of it"}
	} else if changed[""] != serverChanged {
		why = changed[names[0]]
	}
	shown := names
	if len(shown) > 8 {
		shown = shown[:8]
	}
	list := tenon.Visible(strings.Join(shown, ", "))
	if len(names) > len(shown) {
		list += fmt.Sprintf(" and %d more", len(names)-len(shown))
	}
	disabled := ""
	if changed[""] != "" {
		disabled = "; none of its tools is offered"
	}
	return tenon.Errorf(tenon.CodeWaiting, "server '%s' is not what was pinned at its first use: %s (%s)%s. "+
		"Look at it with 'tenon tools pins diff %s', and accept it with 'tenon tools pins accept %s'",
		server, list, why, disabled, server, server)
}

// Call is a tool call that was allowed.
type Call struct {
	Server, Remote string
	New            string          // digest of a new tool's definition that a person allowed; otherwise empty
	By             tenon.Principal // the principal recorded in the pin of a new tool
}

// CheckCall compares a tool with its pin directly before a call, because the server may have changed the tool since the
// run began. If the tool is new, CheckCall pins it, provided that the person who allowed the call saw its current
// definition. Errors: denied, store, and errors of connecting.
func (p *Pins) CheckCall(ctx context.Context, c Call) error {
	if !p.cfg.Servers.HasPins(c.Server) || p.cfg.Rules.Changed == policy.PinsWarn && !p.cfg.Rules.AskNew() {
		return nil
	}
	tools, err := p.cfg.Servers.Tools(ctx, c.Server)
	if err != nil {
		return err
	}
	held, err := p.Check(ctx, c.Server, tools)
	if err != nil {
		return err
	}
	if p.cfg.Rules.Changed != policy.PinsWarn {
		blocked := held.Blocked()
		if reason := cmp.Or(blocked[c.Remote], blocked[""]); reason != "" {
			return tenon.Errorf(tenon.CodeDenied,
				"tool '%s' of server '%s' was not called: %s, and nobody has accepted it; "+
					"see 'tenon tools pins diff %s'", c.Remote, c.Server, reason, c.Server)
		}
	}
	switch digest := held.New[c.Remote]; {
	case digest == "":
		return nil
	case c.New != digest:
		return tenon.Errorf(tenon.CodeDenied,
			"tool '%s' of server '%s' was not called: it is new since its server was pinned, "+
				"and nobody has allowed it as it is now; see 'tenon tools pins diff %s'", c.Remote, c.Server, c.Server)
	}
	i := slices.IndexFunc(tools, func(t tenon.Tool) bool { return t.Remote == c.Remote })
	all, err := definitions(tools[i:])
	if err != nil {
		return err
	}
	i = slices.IndexFunc(all, func(d definition) bool { return d.remote == c.Remote })
	key, _ := p.cfg.Servers.PinKeys(c.Server)
	pin := p.pin(key, all[i], "")
	pin.By = string(c.By)
	return p.cfg.Store.PutPins(ctx, []store.Pin{pin}, true)
}

// IsNew reports whether a tool that was new when the run began still has no pin, so that its first use must ask.
// Errors: store.
func (p *Pins) IsNew(ctx context.Context, t *tenon.Tool) (bool, error) {
	if t.Rules.New == "" || !p.cfg.Servers.HasPins(t.Server) || !p.cfg.Rules.AskNew() {
		return false, nil
	}
	key, _ := p.cfg.Servers.PinKeys(t.Server)
	_, err := p.cfg.Store.Pin(ctx, key, t.Remote)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return true, nil
	}
	return false, err
}
