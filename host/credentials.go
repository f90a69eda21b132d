package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/servers"
)

// Credentials are what a caller brings of its own for servers, by their names. They are
// kept in memory alone, as long as the run is at work or waits: its journal has the names
// of the servers and nothing else. A run that goes on in another process has to be given
// them again.
type Credentials map[string]servers.Overlay

// servers are the names, sorted: what the journal has.
func (c Credentials) servers() []string {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// maxCredentials bounds the runs whose credentials are kept at a time.
const maxCredentials = 4096

// credentials are those of the runs that are at work or wait.
type credentials struct {
	mu   sync.Mutex
	of   map[string]heldCredentials // by the id of the run that was asked for
	next uint64
}

type heldCredentials struct {
	who   tenon.Principal
	order uint64
	c     Credentials
}

// hold keeps credentials for a run. Where there is no room, the run that has had its own
// longest, of the principal with the most, has to be given them again.
func (k *credentials) hold(run string, who tenon.Principal, c Credentials) {
	if len(c) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.of[run]; !there && len(k.of) >= maxCredentials {
		k.evict()
	}
	if k.of == nil {
		k.of = map[string]heldCredentials{}
	}
	k.next++
	k.of[run] = heldCredentials{who, k.next, c}
}

// evict makes room; the caller holds the lock.
func (k *credentials) evict() {
	count := map[tenon.Principal]int{}
	var most tenon.Principal
	for _, h := range k.of {
		if count[h.who]++; count[h.who] > count[most] {
			most = h.who
		}
	}
	oldest := ""
	for run, h := range k.of {
		if h.who == most && (oldest == "" || h.order < k.of[oldest].order) {
			oldest = run
		}
	}
	delete(k.of, oldest)
}

func (k *credentials) drop(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, run)
}

func (k *credentials) find(run, server string) (servers.Overlay, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, ok := k.of[run].c[server]
	return o, ok
}

// Accept looks at what a request brings for servers. Errors: not_found (there is no such
// server), denied (it takes nothing of the kind), invalid.
func (h *Host) Accept(brought map[string]servers.Brought) (Credentials, error) {
	all := h.Servers()
	c := Credentials{}
	for name, b := range brought {
		if all[name] == nil {
			return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s' to have credentials for", tenon.Visible(name))
		}
		o, err := h.config.Servers[name].Accept(name, b)
		if err != nil {
			return nil, err
		}
		c[name] = o
	}
	return c, nil
}

// Give gives a run credentials again: those for servers that it began with credentials
// for; others are not looked at. Without them, or with less, it says which are missing:
// auth_required. A run that was begun without needs none.
func (h *Host) Give(ctx context.Context, run string, c Credentials) error {
	root := rootOf(run)
	names, err := h.broughtFor(ctx, root)
	if err != nil || len(names) == 0 {
		return err
	}
	row, err := h.store.Run(ctx, root)
	if err != nil {
		return err
	}
	all := Credentials{}
	var missing []string
	for _, n := range names {
		o, ok := c[n]
		if !ok {
			o, ok = h.brought.find(root, n)
		}
		if ok {
			all[n] = o
		} else {
			missing = append(missing, n)
		}
	}
	h.brought.hold(root, principalOf(row), all)
	if len(missing) > 0 {
		return lost(root, missing)
	}
	return nil
}

func lost(run string, names []string) error {
	return tenon.Errorf(tenon.CodeAuth, "run %s began with credentials of its caller's own for %s; they are kept nowhere and have to be given again: POST /api/v1/runs/%s/resume with the header Tenon-Server-Credentials",
		run, strings.Join(names, ", "), run)
}

// rootOf is the run that was asked for: the one that called the one that called this one.
func rootOf(run string) string {
	root, _, _ := strings.Cut(run, "/")
	return root
}

// broughtFor names the servers that a run was begun with credentials for.
func (h *Host) broughtFor(ctx context.Context, run string) ([]string, error) {
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return broughtIn(events[0]), nil
}

// broughtIn reads them out of the first event of a run.
func broughtIn(first tenon.Event) []string {
	var spec engine.Spec
	var s struct {
		Brought []string `json:"own_credentials"`
	}
	if json.Unmarshal(first.Data, &spec) != nil || json.Unmarshal(spec.Data, &s) != nil {
		return nil
	}
	return s.Brought
}

// missing are the servers of a list for which a run has no credentials here.
func (k *credentials) missing(run string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, ok := k.find(rootOf(run), n)
		return ok
	})
}

// overlay is what the caller of a run has of its own at a server: what the request
// brought, else what the program or the configuration says of the principal.
func (h *Host) overlay(ctx context.Context, run tenon.Run, server string) (servers.Overlay, error) {
	if h.Servers()[server] == nil {
		return servers.Overlay{}, nil
	}
	root := rootOf(run.ID)
	if o, ok := h.brought.find(root, server); ok {
		o.Owner = string(principalOf(run))
		return o, nil
	}
	if a := h.config.Servers[server].CallerCredentials; a.Bearer || len(a.Headers)+len(a.Env) > 0 {
		names, err := h.broughtFor(ctx, root)
		if err == nil && slices.Contains(names, server) {
			err = lost(root, []string{server})
		}
		if err != nil {
			return servers.Overlay{}, err
		}
	}
	return h.ownAt(ctx, principalOf(run), server)
}

// ownAt is what a principal has of its own at a server without bringing it.
func (h *Host) ownAt(ctx context.Context, who tenon.Principal, server string) (servers.Overlay, error) {
	if h.cfg.Overlay != nil {
		o, err := h.cfg.Overlay(ctx, who, server)
		if err != nil {
			return o, tenon.Errorf(codeOr(err, tenon.CodeAuth), "the credentials of %s for server '%s' are not known: %w", who, server, err)
		}
		if !o.IsZero() {
			o.Owner = string(who)
			return o, nil
		}
	}
	o, secrets, err := h.config.Own(ctx, server, who)
	for _, s := range secrets {
		h.redactor.Add(s)
	}
	if err != nil {
		return servers.Overlay{}, tenon.Errorf(codeOr(err, tenon.CodeAuth), "the credentials of %s for server '%s' are not known: %w", who, server, err)
	}
	if o.IsZero() && who != tenon.PrincipalLocal && h.config.Servers[server].CallerCredentials.Required {
		return o, tenon.Errorf(tenon.CodeAuth, "'%s' has no credentials of its own for server '%s', which wants them: send them in the header Tenon-Server-Credentials, or have servers.%s.principals name them", who, server, server)
	}
	o.Owner = string(who)
	return o, nil
}

// AsCaller has what is asked of a server with the context asked with what a principal
// has of its own there; brought stands above what is configured. Errors: auth_required.
func (h *Host) AsCaller(ctx context.Context, who tenon.Principal, brought Credentials, server string) (context.Context, error) {
	if h.Servers()[server] == nil {
		return ctx, nil
	}
	o, ok := brought[server]
	if !ok {
		var err error
		if o, err = h.ownAt(ctx, who, server); err != nil {
			return ctx, err
		}
	}
	o.Owner = string(who)
	return servers.WithOverlay(ctx, o), nil
}

// codeOr is the code of an error that has one.
func codeOr(err error, otherwise tenon.Code) tenon.Code {
	if code := tenon.ErrorCode(err); code != tenon.CodeInternal {
		return code
	}
	return otherwise
}
