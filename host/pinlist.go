package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// The states of a [PinState].
const (
	PinSame    = "pinned"  // it is what was pinned
	PinChanged = "changed" // it differs, and is not used until it is accepted
	PinNew     = "new"     // it is pinned at its first use, or, where a pinned tool is gone, once it is accepted
	PinGone    = "gone"    // the server does not have it any more
)

// PinState is a tool, or with an empty Remote its server, held to its pin.
type PinState struct {
	Server  string    `json:"server"`
	Remote  string    `json:"remote_name"`
	State   string    `json:"state"`
	Blocked string    `json:"blocked,omitempty"` // why it is not used
	By      string    `json:"by,omitempty"`      // who pinned it
	Created time.Time `json:"created,omitzero"`
	Changes []Change  `json:"changes,omitempty"`
}

// Change is one field of a definition that is not what it was. Before and After are
// JSON; empty where there is none.
type Change struct {
	Path   string          `json:"path"` // JSON pointer; empty: the whole definition
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Pins asks a server what it has now and holds it to what is pinned: the server
// itself first, then its tools by name. Nothing is pinned by that. Errors: not_found,
// and those of reaching it.
func (h *Host) Pins(ctx context.Context, server string) ([]PinState, error) {
	v, err := h.viewPins(ctx, server)
	if err != nil {
		return nil, err
	}
	var list []PinState
	for _, name := range v.names {
		d, has := v.now[name]
		p, was := v.kept[name]
		s := PinState{Server: server, Remote: name, State: PinSame, Blocked: v.changed[name], By: p.By, Created: p.Created}
		switch {
		case !was:
			s.State = PinNew
		case !has:
			s.State = PinGone
		case p.Digest != d.digest:
			s.State = PinChanged
			before, err := h.store.Pin(ctx, v.key, name)
			if err != nil {
				return nil, err
			}
			s.Changes = differences(before.Definition, d.json)
		}
		list = append(list, s)
	}
	return list, nil
}

// AcceptPins pins what a server has now, in place of what was pinned: one tool, or,
// where remote is empty, the server and all its tools, whose pins of tools that are
// gone are dropped. It returns what was accepted. Errors: not_found, conflict (what
// there is to accept is not what was seen, if that is given), and those of reaching the server.
func (h *Host) AcceptPins(ctx context.Context, server, remote, by string, seen []PinState) ([]PinState, error) {
	list, err := h.Pins(ctx, server)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s PinState) bool { return s.State == PinSame || remote != "" && s.Remote != remote })
	if seen != nil && !slices.EqualFunc(seen, list, func(a, b PinState) bool { return bytes.Equal(encode(a), encode(b)) }) {
		return nil, tenon.Errorf(tenon.CodeConflict, "server '%s' has changed again in the meantime; look at it once more", server)
	}
	v, err := h.viewPins(ctx, server)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil
	}
	var accepted []PinState
	var put []store.Pin
	var gone []string
	for _, s := range list {
		d, has := v.now[s.Remote]
		if accepted = append(accepted, s); !has {
			gone = append(gone, s.Remote)
			continue
		}
		p := h.pin(v.key, d, "")
		p.By = by
		put = append(put, p)
	}
	if len(put) > 0 {
		err = h.store.PutPins(ctx, put, false)
	}
	if err == nil && len(gone) > 0 { // last: as long as they are pinned, nothing takes their place
		if err = h.store.DeletePins(ctx, v.key, gone...); tenon.ErrorCode(err) == tenon.CodeNotFound {
			err = nil // somebody else was faster
		}
	}
	return accepted, err
}

// ForgetPins drops the pins of a server: its next use is the first one again. Errors:
// not_found.
func (h *Host) ForgetPins(ctx context.Context, server string) error {
	err := h.store.DeletePins(ctx, h.pinKey(server))
	h.pins.mu.Lock()
	delete(h.pins.seen, server)
	h.pins.mu.Unlock()
	return err
}

// ForgetPins does so for a host that is not open, where it has a store: whoever
// writes a server's entry anew means what it is then.
func ForgetPins(ctx context.Context, cfg Config, server string) error {
	path, _ := cfg.storePath()
	if _, err := os.Stat(path); path == "" || err != nil {
		return nil // nothing was ever pinned
	}
	h, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	if err = h.ForgetPins(ctx, server); tenon.ErrorCode(err) == tenon.CodeNotFound {
		err = nil
	}
	return errors.Join(err, h.Close())
}

// pinView is a server as it is now beside what is pinned of it.
type pinView struct {
	key     string
	names   []string // of both, sorted; "" is the server
	now     map[string]definition
	kept    map[string]store.Pin
	changed map[string]string
}

func (h *Host) viewPins(ctx context.Context, server string) (*pinView, error) {
	s := h.Servers()[server]
	if _, configured := h.config.Servers[server]; s == nil || !configured {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s' whose tools could be pinned; servers: %s", server, strings.Join(slices.Sorted(maps.Keys(h.config.Servers)), ", "))
	}
	tools, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	v := &pinView{key: h.pinKey(server), now: map[string]definition{}, kept: map[string]store.Pin{}}
	if v.now[""], err = h.serverDefinition(server); err != nil {
		return nil, err
	}
	defs, err := definitions(tools)
	if err != nil {
		return nil, err
	}
	for _, d := range defs {
		v.now[d.remote] = d
	}
	kept, err := h.store.Pins(ctx, v.key)
	if err != nil {
		return nil, err
	}
	for _, p := range kept {
		v.kept[p.Remote] = p
	}
	v.changed = changes(v.now, v.kept)
	both := maps.Clone(v.now)
	for name := range v.kept {
		both[name] = definition{}
	}
	v.names = slices.Sorted(maps.Keys(both))
	return v, nil
}

// maxChanges bounds the fields that are told of one definition.
const maxChanges = 100

// differences lists what is not the same in two canonical definitions.
func differences(before, after json.RawMessage) []Change {
	var list []Change
	compare("", numbered(before), numbered(after), &list, 0)
	return list
}

func compare(path string, a, b any, list *[]Change, depth int) {
	if len(*list) >= maxChanges || bytes.Equal(encode(a), encode(b)) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || depth > maxSets {
			break
		}
		both := maps.Clone(x)
		maps.Copy(both, y)
		for _, k := range slices.Sorted(maps.Keys(both)) {
			at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
			one, was := x[k]
			other, is := y[k]
			if was && is {
				compare(at, one, other, list, depth+1)
			} else {
				*list = append(*list, change(at, one, was, other, is))
			}
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || depth > maxSets {
			break
		}
		for i := range x {
			compare(fmt.Sprintf("%s/%d", path, i), x[i], y[i], list, depth+1)
		}
		return
	}
	*list = append(*list, change(path, a, true, b, true))
}

func change(path string, a any, was bool, b any, is bool) Change {
	c := Change{Path: path}
	if was {
		c.Before = encode(a)
	}
	if is {
		c.After = encode(b)
	}
	return c
}
