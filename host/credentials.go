package host

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// Credentials are the caller's own credentials for servers, by server name. They are kept only in memory, while the run
// is at work or waits. The run's journal contains only the names of the servers. To continue the run in another
// process, the caller has to send them again.
type Credentials map[string]servers.Overlay

// servers returns the names of the servers, sorted. The journal contains these names.
func (c Credentials) servers() []string {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// maxCredentials bounds the runs whose credentials are kept.
const maxCredentials = 4096

// credentials are the callers' credentials of runs that are at work or wait.
type credentials struct {
	mu   sync.Mutex
	of   map[string]heldCredentials // by the id of the run that the caller started
	next uint64
}

type heldCredentials struct {
	who   tenon.Principal
	order uint64
	c     Credentials
}

// hold keeps credentials for a run. If there is no room, the principal with the most entries loses the oldest one,
// whose run then needs its credentials again.
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

// evict makes room. The caller holds the lock.
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

// requestKey is the context key of the credentials with which the run of a request began.
type requestKey struct{}

type ofRequest struct {
	run string
	c   Credentials
}

// withRequest returns a context that has the credentials of the request which began a run.
func withRequest(ctx context.Context, run string, c Credentials) context.Context {
	if len(c) == 0 {
		return ctx
	}
	return context.WithValue(ctx, requestKey{}, ofRequest{run, c})
}

// requestCredentials returns the credentials of the request which began a run, if the context is of that request.
func requestCredentials(ctx context.Context, run string) Credentials {
	if r, ok := ctx.Value(requestKey{}).(ofRequest); ok && r.run == run {
		return r.c
	}
	return nil
}

// holds reports whether there are credentials for a run.
func (k *credentials) holds(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.of[run]
	return ok
}

func (k *credentials) find(run, server string) (servers.Overlay, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, ok := k.of[run].c[server]
	return o, ok
}

func (h callersHandle) Accept(brought map[string]servers.Brought) (Credentials, error) {
	all := h.host.connections()
	c := Credentials{}
	for name, b := range brought {
		if all[name] == nil {
			return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s' to have credentials for",
				tenon.Visible(name))
		}
		o, err := h.host.config.Servers[name].Accept(name, b)
		if err != nil {
			return nil, err
		}
		c[name] = o
	}
	return c, nil
}

func (h callersHandle) SetCredentials(ctx context.Context, run string, c Credentials) error {
	ctx = store.OwnOnly(ctx)
	root := tenon.RootRun(run)
	names, err := h.host.broughtFor(ctx, root)
	if err != nil || len(names) == 0 {
		return err
	}
	row, err := h.host.store.Run(ctx, root)
	if err != nil {
		return err
	}
	all := Credentials{}
	var missing []string
	for _, n := range names {
		o, ok := c[n]
		if !ok {
			o, ok = h.host.brought.find(root, n)
		}
		if ok {
			all[n] = o
		} else {
			missing = append(missing, n)
		}
	}
	h.host.brought.hold(root, row.Owner(), all)
	if len(missing) > 0 {
		return lost(root, missing)
	}
	return nil
}

func lost(run string, names []string) error {
	return tenon.Errorf(tenon.CodeAuth, "run %s began with credentials of its caller's own for %s; they are kept "+
		"nowhere and have to be sent again: POST /api/v1/runs/%s/resume with the header Tenon-Server-Credentials",
		run, strings.Join(names, ", "), run)
}

// broughtFor names the servers for which a run was begun with credentials.
func (h *Host) broughtFor(ctx context.Context, run string) ([]string, error) {
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return broughtIn(events[0]), nil
}

// broughtIn reads these names from the first event of a run.
func broughtIn(first tenon.Event) []string {
	_, spec, _ := view.Spec[struct {
		Names []string `json:"own_credentials"`
	}](first) // other readers of the journal report its defects
	return spec.Names
}

// missing returns the servers of a list for which this process has no credentials of a run.
func (k *credentials) missing(run string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, ok := k.find(tenon.RootRun(run), n)
		return ok
	})
}

// overlay returns the credentials of a run's caller at a server: from the request, otherwise those the program or the
// configuration defines for the principal.
func (h *Host) overlay(ctx context.Context, run tenon.Run, server string) (servers.Overlay, error) {
	if h.connections()[server] == nil {
		return servers.Overlay{}, nil
	}
	if h.cassette.playsServers() { // nothing asks a program or an authorization server for credentials
		return servers.Overlay{Owner: string(run.Owner())}, nil
	}
	root := tenon.RootRun(run.ID)
	o, ok := h.brought.find(root, server)
	if !ok { // another run may have taken their place
		o, ok = requestCredentials(ctx, root)[server]
	}
	if ok {
		return h.exchanged(ctx, run.Owner(), server, o)
	}
	if a := h.config.Servers[server].CallerCredentials; a.Bearer || a.Exchange || len(a.Headers)+len(a.Env) > 0 {
		names, err := h.broughtFor(ctx, root)
		if err == nil && slices.Contains(names, server) {
			err = lost(root, []string{server})
		}
		// A call that was sent before it is stored has the credentials in its context, if it began with any.
		if err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
			return servers.Overlay{}, err
		}
	}
	return h.ownAt(ctx, run.Owner(), server)
}

// ownAt returns the credentials that the program or the configuration defines for a principal at a server.
func (h *Host) ownAt(ctx context.Context, who tenon.Principal, server string) (servers.Overlay, error) {
	if h.cfg.Overlay != nil {
		o, err := h.programOverlay(ctx, who, server)
		if err != nil {
			return o, tenon.Errorf(codeOr(err, tenon.CodeAuth), "the credentials of %s for server '%s' are not "+
				"known: %w", who, server, err)
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
		return servers.Overlay{}, tenon.Errorf(codeOr(err, tenon.CodeAuth),
			"the credentials of %s for server '%s' are not known: %w", who, server, err)
	}
	if o.IsZero() && h.signsIn(who, server) {
		return h.accountAt(ctx, who, server)
	}
	if c := h.config.Servers[server].CallerCredentials; o.IsZero() && who != tenon.PrincipalLocal && c.Required {
		if c.Exchange {
			return o, tenon.Errorf(tenon.CodeAuth, "'%s' has no credentials for server '%s', which requires them: "+
				"send the request with an access token of serve.auth.oauth, which is exchanged for one of the server",
				who, server)
		}
		return o, tenon.Errorf(tenon.CodeAuth, "'%s' has no credentials for server '%s', which requires "+
			"them: send them in the header Tenon-Server-Credentials, or name them in servers.%s.principals", who,
			server, server)
	}
	o.Owner = string(who)
	return o, nil
}

func (h callersHandle) Context(ctx context.Context, who tenon.Principal, brought Credentials,
	server string) (context.Context, error) {
	if h.host.connections()[server] == nil || h.host.cassette.playsServers() {
		return ctx, nil
	}
	o, ok := brought[server]
	var err error
	if ok {
		o, err = h.host.exchanged(ctx, who, server, o)
	} else {
		o, err = h.host.ownAt(ctx, who, server)
	}
	if err != nil {
		return ctx, err
	}
	o.Owner = string(who)
	return servers.WithOverlay(ctx, o), nil
}

// codeOr returns the code of an error, or a default if the error has none.
func codeOr(err error, otherwise tenon.Code) tenon.Code {
	if code := tenon.ErrorCode(err); code != tenon.CodeInternal {
		return code
	}
	return otherwise
}
