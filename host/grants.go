package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
)

// Grant is an approval for later calls with its current state: a permanent one, or one for the rest of a session.
type Grant struct {
	store.Grant
	Session string `json:"session,omitempty"` // if set, it is only for this session
	State   string `json:"state"`             // GrantActive or another state
	Reason  string `json:"reason,omitempty"`  // why it is not active
}

// The states of a [Grant].
const (
	GrantActive  = "active"
	GrantLapsed  = "lapsed"  // the server, its target or the tool's definition changed
	GrantExpired = "expired" // its time is over
	GrantUsed    = "used_up" // all calls that it allowed were made
	GrantForeign = "foreign" // somebody else wrote it; see package store/signed
)

// Tool returns the tool of a grant in the form SERVER.TOOL, which commands accept.
func (g Grant) Tool() string { return g.Name + "." + g.Remote }

// The bounds of a grant's conditions.
const (
	maxUses = 1_000_000
	maxFor  = 10 * 365 * 24 * time.Hour
)

// checkRemember refuses a ruling that cannot be stored as a grant. Errors: invalid.
func (h *Host) checkRemember(asked *agent.Asking, r *agent.Ruling) error {
	bad := func(format string, args ...any) error { return tenon.Errorf(tenon.CodeInvalid, format, args...) }
	switch always := r.Remember == agent.RememberAlways && r.Verdict == tenon.Allow &&
		asked.Kind == agent.AskApproval; {
	case r.IsNarrow() && !always:
		return bad("a condition, a count and a time narrow what is allowed for good; this decision is none of " +
			"that kind")
	case r.Remember != "" && r.Verdict == tenon.Deny:
		return bad("a denial is not remembered; leave remember out, and to deny later calls too, add a rule with the " +
			"verdict deny to tenon.yaml")
	case asked.Again && r.Remember != "":
		return bad("the outcome of this call is unknown, so a decision about its repeat holds for this call only; " +
			"leave remember out")
	case !always:
		return nil
	case asked.Subject == nil:
		return bad("an older tenon asked about this call, so it cannot be allowed for good; allow it once")
	case r.Uses < 0 || r.Uses > maxUses:
		return bad("a grant is for 1 to %d calls, not %d", maxUses, r.Uses)
	case r.For < 0 || r.For > maxFor:
		return bad("a grant lasts up to ten years, not %s", r.For)
	case r.If == "":
		return nil
	}
	c, err := h.conditions.compile(r.If)
	if err != nil {
		return bad("the condition of the grant: %w", err)
	}
	args := asked.Arguments
	if len(r.Arguments) > 0 {
		args = r.Arguments
	}
	if _, err := c.Holds(&policy.Facts{Arguments: args}); err != nil {
		return bad("%w; the condition must be decidable for this call", err)
	}
	return nil
}

// keepGrant stores and returns a person's permanent grant. The journal already contains the decision: after a crash in
// between, the tool asks once more.
func (h *Host) keepGrant(ctx context.Context, who tenon.Principal, asked agent.Asking, r agent.Ruling) (*store.Grant,
	error) {
	if r.Remember != agent.RememberAlways {
		return nil, nil
	}
	s, now := asked.Subject, h.now()
	g := store.Grant{ID: newGrantID(grantID), Principal: who, Server: s.Server, Name: asked.Server,
		Remote: asked.Remote, Target: s.Target, Definition: s.Definition,
		Condition: r.If, Uses: r.Uses, By: r.By, Created: now}
	if r.For > 0 {
		g.Expires = now.Add(r.For)
	}
	return &g, h.store.PutGrant(ctx, g)
}

var grantIDs = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// The beginnings of the ids of grants.
const (
	grantID        = "gr_" // permanent
	sessionGrantID = "gs_" // for a session
)

// IsGrantID reports whether a text can be the id of a grant, or its beginning, instead of the name of a tool.
func IsGrantID(text string) bool {
	return strings.HasPrefix(text, grantID) || strings.HasPrefix(text, sessionGrantID)
}

// newGrantID returns an id that is short enough to type, such as gr_4k7w2m9x.
func newGrantID(kind string) string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return kind + grantIDs.EncodeToString(b)
}

// conditions are the compiled conditions of grants. The zero value is ready.
type conditions struct {
	mu       sync.Mutex
	language *policy.Language
	known    map[string]*policy.Condition
}

// maxConditions bounds the compiled conditions in memory.
const maxConditions = 256

func (c *conditions) compile(text string) (*policy.Condition, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[text]; known != nil {
		return known, nil
	}
	if c.language == nil {
		l, err := policy.NewArgumentLanguage()
		if err != nil {
			return nil, err
		}
		c.language = l
	}
	compiled, err := c.language.Condition(text)
	if err != nil {
		return nil, err
	}
	if c.known == nil || len(c.known) >= maxConditions {
		c.known = map[string]*policy.Condition{}
	}
	c.known[text] = compiled
	return compiled, nil
}

// grantFor returns the author of a grant that allows a call, and uses up one of the grant's calls. It returns "" if no
// grant allows the call.
func (h *Host) grantFor(ctx context.Context, run tenon.Run, step, remote string, s *agent.Subject,
	facts *policy.Facts) (string, error) {
	grants, err := h.store.Grants(ctx, run.Owner())
	if err != nil {
		return "", err
	}
	// Try unlimited grants first, so that no counted call is used up without need.
	slices.SortStableFunc(grants, func(a, b store.Grant) int { return cmp.Compare(min(a.Uses, 1), min(b.Uses, 1)) })
	for i := range grants {
		g := &grants[i]
		if g.Foreign || g.Server != s.Server || g.Remote != remote || g.Target != s.Target ||
			g.Definition != s.Definition || s.Definition == "" {
			continue
		}
		ok, err := h.allows(ctx, g, run.ID, step, facts)
		if err != nil {
			return "", err
		}
		if ok && g.Condition == "" && g.Uses == 0 && g.Expires.IsZero() {
			return g.By + " (always)", nil
		}
		if ok {
			return g.By + " (grant " + g.ID + ")", nil
		}
	}
	return "", nil
}

// allows reports whether a grant for a tool allows a call of it, and counts the call.
func (h *Host) allows(ctx context.Context, g *store.Grant, run, step string, facts *policy.Facts) (bool, error) {
	if g.Expired {
		return false, nil
	}
	if g.Condition != "" {
		c, err := h.conditions.compile(g.Condition)
		var holds bool
		if err == nil {
			holds, err = c.Holds(facts)
		}
		if err != nil {
			h.log.Info("grant "+g.ID+" does not apply to this call: "+err.Error(), "run", run, "step", step)
		}
		if err != nil || !holds {
			return false, nil
		}
	}
	if g.Uses == 0 && g.Expires.IsZero() {
		return true, nil
	}
	return h.store.UseGrant(ctx, g.ID, run, step, h.now())
}

func (h approvalsHandle) Grants(ctx context.Context, principal tenon.Principal) ([]Grant, error) {
	stored, err := h.host.store.Grants(ctx, principal)
	if err != nil {
		return nil, err
	}
	list := make([]Grant, len(stored))
	for i := range stored {
		list[i] = Grant{Grant: stored[i]}
		list[i].State, list[i].Reason = h.host.grantState(ctx, &stored[i])
	}
	sessions, err := h.host.store.SessionGrants(ctx, principal)
	if err != nil {
		return nil, err
	}
	for i := range sessions {
		list = append(list, sessionGrant(&sessions[i]))
	}
	return list, nil
}

// sessionGrant describes an approval of a session like a permanent one.
func sessionGrant(s *store.SessionGrant) Grant {
	g := Grant{Session: s.Session, State: GrantActive, Grant: store.Grant{ID: s.ID, Principal: s.Principal,
		Name: s.Server, Remote: s.Remote, By: s.By, Created: s.Created, Foreign: s.Foreign}}
	if s.Foreign {
		g.State, g.Reason = GrantForeign, "somebody else wrote it into this store; the tool asks again"
	}
	return g
}

// keepForSession stores an approval for the rest of a session before the journal records it: the next call may be
// decided at once. It returns the id, or "" for any other ruling. An approval that only the store has allows nothing.
func (h *Host) keepForSession(ctx context.Context, run tenon.Run, asked *agent.Asking, r *agent.Ruling) (string,
	error) {
	if r.Verdict != tenon.Allow || r.Remember != agent.RememberSession || asked.Kind != agent.AskApproval ||
		run.Session == "" {
		return "", nil
	}
	g := store.SessionGrant{ID: newGrantID(sessionGrantID), Session: run.Session, Principal: run.Owner(), By: r.By,
		Key: asked.Subject.SessionKey(asked.Server, asked.Remote), Server: asked.Server, Remote: asked.Remote,
		Created: h.now()}
	return g.ID, h.store.PutSessionGrant(ctx, g)
}

// grantState returns whether a grant applies now and, if not, the reason. It starts no server.
func (h *Host) grantState(ctx context.Context, g *store.Grant) (state, reason string) {
	switch {
	case g.Foreign:
		return GrantForeign, "somebody else wrote it into this store; 'tenon store adopt' makes it yours"
	case g.Server == "":
		return GrantLapsed, "an older tenon stored it without a server; the tool asks again"
	case g.Expired, !g.Expires.IsZero() && !h.now().Before(g.Expires):
		return GrantExpired, "its time is over"
	case g.Uses > 0 && g.Used >= g.Uses:
		return GrantUsed, "all calls that it allowed were made"
	}
	name, id, ok := h.toolWith(g.Server, g.Remote)
	switch {
	case !ok && g.Server == config.TargetID(g.Target): // for a server that is in no file
		return GrantActive, ""
	case !ok && g.Server == h.serverID(catalog.ProviderServer): // only a call says which address a connector has
		return GrantActive, ""
	case !ok:
		return GrantLapsed, "this configuration has no server " + g.Server
	case id.Target != g.Target:
		return GrantLapsed, "the command or address of its server changed"
	}
	if d := h.knownDefinition(ctx, name, g.Remote); d != "" && d != g.Definition {
		return GrantLapsed, "the tool's definition changed"
	}
	return GrantActive, ""
}

// toolWith returns the name, in this host, of the server or toolset that has the tool of an identity.
func (h *Host) toolWith(server, remote string) (name string, id executor.Identity, ok bool) {
	for name := range h.sets() {
		if id := h.identify(name, remote); id.Server == server {
			return name, id, true
		}
	}
	return "", executor.Identity{}, false
}

func (h approvalsHandle) Revoke(ctx context.Context, principal tenon.Principal, id string) error {
	if strings.HasPrefix(id, sessionGrantID) {
		return h.host.store.DeleteSessionGrant(ctx, principal, id)
	}
	return h.host.store.DeleteGrant(ctx, principal, id)
}

// FindGrant finds a grant by its id, by a prefix of the id, or by its tool as SERVER.TOOL. Errors: not_found, conflict
// (several grants match).
func FindGrant(list []Grant, ref string) (Grant, error) {
	var found []Grant
	for _, g := range list {
		if g.ID == ref {
			return g, nil
		}
		if g.Tool() == ref || len(ref) > len(grantID) && strings.HasPrefix(g.ID, ref) {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 0:
		return Grant{}, tenon.Errorf(tenon.CodeNotFound, "there is no grant '%s'; tenon approvals grants lists them "+
			"with their ids", tenon.Visible(ref))
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, g := range found {
		ids = append(ids, g.ID)
	}
	return Grant{}, tenon.Errorf(tenon.CodeConflict, "%d grants are for '%s': name one of them by its id: %s",
		len(found), tenon.Visible(ref), strings.Join(ids, ", "))
}
