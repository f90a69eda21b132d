package host

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/internal/spread"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
)

// pins hold the tools of configured servers to the definitions that they had when
// they were first used. The zero value is ready.
//
//   - The first use of a server pins its command or address and all its tools.
//   - A definition that differs from its pin, in any field, is a change; so are all
//     tools of a server whose command or address differs. The order of keys, and of
//     the members of required, enum and type, is no part of a definition.
//   - A tool that is new is pinned at its own first use, unless one that was pinned
//     is gone: it may be that one under another name, and is a change.
//   - A tool that is gone stays pinned, so that it cannot come back as another one.
//
// What has changed is neither offered nor called until a person accepts it
// (policy.pins: ask), or is told of (warn).
type pins struct {
	mu   sync.Mutex
	seen map[string]pinned // by server
}

// pinned is what came of holding a list of tools to the pins.
type pinned struct {
	tools   []tenon.Tool      // as the server gave them; the same array is the same list
	changed map[string]string // remote name, "" for the server → why it is not what was pinned
}

// definition is a tool or server in the form that is pinned.
type definition struct {
	remote string
	json   json.RawMessage // canonical
	digest string
}

// checkPins holds what a server offers to its pins, and pins what is used first. It
// returns the tools that have changed, with the reason. The store is asked where
// the list is another one than before, and while something waits to be accepted.
func (h *Host) checkPins(ctx context.Context, server string, tools []tenon.Tool) (map[string]string, error) {
	if !h.arePinned(server) {
		return nil, nil
	}
	h.pins.mu.Lock()
	last, ok := h.pins.seen[server]
	h.pins.mu.Unlock()
	if ok && len(last.changed) == 0 && sameList(last.tools, tools) {
		return nil, nil
	}
	changed, err := h.holdToPins(ctx, server, tools)
	if err != nil {
		return nil, err
	}
	h.pins.mu.Lock()
	defer h.pins.mu.Unlock()
	if h.pins.seen == nil {
		h.pins.seen = map[string]pinned{}
	}
	h.pins.seen[server] = pinned{tools: tools, changed: changed}
	return changed, nil
}

// arePinned reports whether the tools of a server are held to pins: those that a
// Go program adds and those of a cassette are not.
func (h *Host) arePinned(server string) bool {
	_, configured := h.config.Servers[server]
	return configured && h.config.Policy.Pins != policy.PinsOff && h.Servers()[server] != nil && h.cfg.Replay == ""
}

func sameList(a, b []tenon.Tool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (h *Host) holdToPins(ctx context.Context, server string, tools []tenon.Tool) (map[string]string, error) {
	key := h.pinKey(server)
	own, err := h.serverDefinition(server)
	if err != nil {
		return nil, err
	}
	all := rawDigest(tools)
	pin, err := h.store.Pin(ctx, key, "")
	known := err == nil
	switch {
	case known && pin.Raw == all && pin.Digest == own.digest:
		return nil, nil // byte for byte what it was
	case !known && tenon.ErrorCode(err) != tenon.CodeNotFound:
		return nil, err
	}
	kept, err := h.store.Pins(ctx, key)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]store.Pin, len(kept))
	for _, p := range kept {
		byName[p.Remote] = p
	}
	pin, known = byName[""]
	defs, err := definitions(tools)
	if err != nil {
		return nil, err
	}
	now := map[string]definition{"": own}
	for _, d := range defs {
		now[d.remote] = d
	}
	changed := changes(now, byName)
	var fresh []store.Pin
	for _, d := range defs {
		if _, ok := byName[d.remote]; !ok && changed[d.remote] == "" {
			fresh = append(fresh, h.pin(key, d, ""))
		}
	}
	if len(changed) == 0 {
		own := h.pin(key, own, all)
		if known { // in another order, or with fewer tools: as it was, and the next look is a short one
			own.By, own.Created = pin.By, pin.Created
			err = h.store.PutPins(ctx, []store.Pin{own}, false)
		} else {
			fresh = append(fresh, own)
		}
	}
	if err == nil && len(fresh) > 0 {
		err = h.store.PutPins(ctx, fresh, true)
	}
	return changed, err
}

// changes says what has changed of a server, and of each of its tools; "" is the
// server itself. What is new and may be pinned is not among it.
func changes(now map[string]definition, kept map[string]store.Pin) map[string]string {
	changed := map[string]string{}
	own, known := kept[""]
	moved := known && own.Digest != now[""].digest
	gone := false
	for name := range kept {
		_, has := now[name]
		gone = gone || !has
	}
	for name, d := range now {
		switch p, ok := kept[name]; {
		case moved:
			changed[name] = serverChanged
		case ok && p.Digest != d.digest:
			changed[name] = "its definition has changed since it was pinned"
		case !ok && gone:
			changed[name] = "it is new, and a tool that was pinned is gone: it may be that one under another name"
		}
	}
	return changed
}

const serverChanged = "the command or address of its server has changed since it was pinned"

// firstUse is who pinned what nobody had accepted.
const firstUse = "first use"

func (h *Host) pin(key string, d definition, raw string) store.Pin {
	return store.Pin{Server: key, Remote: d.remote, Raw: raw, Digest: d.digest, Definition: d.json, By: firstUse, Created: h.now()}
}

// pinKey is the name of a server in the pins. Of several configurations in one
// folder, which have one store, each has servers of its own.
func (h *Host) pinKey(server string) string {
	if base := filepath.Base(h.config.Path); h.config.Path != "" && base != "tenon.yaml" {
		return base + ":" + server
	}
	return server
}

// rawDigest is the digest of a list, byte for byte.
func rawDigest(tools []tenon.Tool) string {
	sum := sha256.New()
	for i := range tools {
		sum.Write(tools[i].Raw)
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// definitions returns the tools in the form that is pinned. Two of one name are one
// definition.
func definitions(tools []tenon.Tool) ([]definition, error) {
	type defined struct {
		list []definition
		err  error
	}
	list := make([]definition, 0, len(tools))
	at := make(map[string]int, len(tools))
	for _, part := range spread.Map(tools, worthCore, func(_ int, part []tenon.Tool) (d defined) {
		d.list, d.err = definitionsOf(part)
		return d
	}) {
		if part.err != nil {
			return nil, part.err
		}
		for _, d := range part.list {
			if j, twice := at[d.remote]; twice {
				both, err := define(d.remote, encode([]json.RawMessage{list[j].json, d.json}))
				if err != nil {
					return nil, err
				}
				list[j] = both
				continue
			}
			at[d.remote] = len(list)
			list = append(list, d)
		}
	}
	return list, nil
}

// worthCore is how many definitions are worth a core.
const worthCore = 256

// definitionsOf returns them one by one.
func definitionsOf(tools []tenon.Tool) ([]definition, error) {
	list := make([]definition, len(tools))
	for i := range tools {
		raw := tools[i].Raw
		if len(raw) == 0 {
			raw = encode(&tools[i])
		}
		var err error
		if list[i], err = define(tools[i].Remote, raw); err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "tool '%s': its definition cannot be read: %w", tools[i].Remote, err)
		}
	}
	return list, nil
}

// define makes JSON canonical, without the order of lists that are sets.
func define(remote string, raw json.RawMessage) (definition, error) {
	// Most definitions need not be decoded for that.
	canonical, ok := rawjson.AppendSorted(make([]byte, 0, len(raw)), raw, func(key []byte) bool { return isSet(string(key)) })
	if !ok {
		var err error
		if canonical, err = canonicalDecoded(raw); err != nil {
			return definition{}, err
		}
	}
	sum := sha256.Sum256(canonical)
	return definition{remote: remote, json: canonical, digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// canonicalDecoded does so for any JSON.
func canonicalDecoded(raw json.RawMessage) ([]byte, error) {
	v, err := policy.Decoded(raw)
	if err != nil {
		return nil, err
	}
	sortSets(v, 0)
	return encode(v), nil
}

// numbered decodes JSON that is known to be valid; numbers stay as they are written.
func numbered(raw json.RawMessage) any {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	_ = d.Decode(&v) // it was read before
	return v
}

// isSet reports whether the order of a list under a key says nothing.
func isSet(key string) bool { return key == "required" || key == "enum" || key == "type" }

// maxSets bounds how deep lists are looked for; below, their order counts.
const maxSets = 64

func sortSets(v any, depth int) {
	if depth > maxSets {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			sortSets(e, depth+1)
		}
	case map[string]any:
		for k, e := range v {
			if list, ok := e.([]any); ok && isSet(k) {
				slices.SortFunc(list, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
			}
			sortSets(e, depth+1)
		}
	}
}

// serverDefinition is what is pinned of a server itself: what is started or called.
// What may be a secret is left out: the values of variables and headers, and
// whatever the file takes from the environment stands as it is written there.
func (h *Host) serverDefinition(server string) (definition, error) {
	c := h.config.Servers[server].WithDefaults()
	path := "servers." + server + "."
	said := func(key, value string) string {
		if w := h.config.Written(path + key); strings.Contains(w, "${") {
			return w
		}
		return value
	}
	d := map[string]any{"transport": c.Transport}
	if c.Transport == servers.TransportStdio {
		args := make([]string, len(c.Args))
		for i, a := range c.Args {
			args[i] = said(fmt.Sprintf("args[%d]", i), a)
		}
		d["command"], d["args"], d["env"] = said("command", c.Command), args, slices.Sorted(maps.Keys(c.Env))
	} else {
		d["url"], d["headers"], d["auth"] = said("url", h.Servers()[server].Status().Target), slices.Sorted(maps.Keys(c.Headers)), c.Auth.Type
	}
	return define("", encode(d))
}

// unpinned is the error about tools that wait to be accepted, nil for none.
func (h *Host) unpinned(server string, changed map[string]string) error {
	if len(changed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(changed))
	why := changed[names[0]]
	if names = slices.DeleteFunc(names, func(n string) bool { return n == "" }); len(names) == 0 {
		names = []string{"all of it"}
	}
	shown := names
	if len(shown) > 8 {
		shown = shown[:8]
	}
	list := tenon.Visible(strings.Join(shown, ", "))
	if len(names) > len(shown) {
		list += fmt.Sprintf(" and %d more", len(names)-len(shown))
	}
	return tenon.Errorf(tenon.CodeWaiting, "server '%s' is not what was pinned at its first use: %s (%s). Look at it with 'tenon tools pins diff %s', and accept it with 'tenon tools pins accept %s'",
		server, list, why, server, server)
}

// checkCall holds a tool to its pin right before it is called: the server may have
// changed it since the run began.
func (h *Host) checkCall(ctx context.Context, server, remote string) error {
	if !h.arePinned(server) || h.config.Policy.Pins == policy.PinsWarn {
		return nil
	}
	tools, err := h.Servers()[server].Now(ctx)
	if err != nil {
		return err
	}
	changed, err := h.checkPins(ctx, server, tools)
	if err != nil {
		return err
	}
	if reason := cmp.Or(changed[remote], changed[""]); reason != "" {
		return tenon.Errorf(tenon.CodeDenied, "tool '%s' of server '%s' was not called: %s, and nobody has accepted it; see 'tenon tools pins diff %s'", remote, server, reason, server)
	}
	return nil
}
