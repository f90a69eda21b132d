package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/workflow"
)

// maxHeld bounds the messages of all conversations that are folded at a time. Runs
// that one after another leave a conversation before its end would hold it many times.
const maxHeld = 16 << 20

// folding is a run whose journal is being folded.
type folding struct {
	run  *documentRun
	core tenon.Core
	next int // event
	kid  int // of run.kids
	had  int // messages of what it goes on from
}

// fold reads all journals with the cores that wrote them, each after what it goes on
// from, and checks what was said. Runs that go on from each other in a circle are
// found by never being reached.
func (d *document) fold(ctx context.Context) error {
	held := 0
	for i := range d.Runs {
		slices.SortFunc(d.Runs[i].kids, func(a, b *documentRun) int { return a.seq - b.seq })
	}
	for i := range d.Runs {
		if d.Runs[i].Run.Parent != "" {
			continue
		}
		root, err := d.begin(&d.Runs[i], nil)
		if err != nil {
			return err
		}
		for stack := []*folding{root}; len(stack) > 0; {
			if ctx.Err() != nil {
				return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
			}
			f := stack[len(stack)-1]
			if err := f.step(); err != nil {
				return err
			}
			if f.next == len(f.run.Events) { // before its children: a long conversation is held once
				if err := f.end(); err != nil {
					return err
				}
				stack, held = stack[:len(stack)-1], held-f.had
			}
			for ; f.kid < len(f.run.kids) && f.run.kids[f.kid].seq == f.next; f.kid++ {
				k, err := d.begin(f.run.kids[f.kid], f.core)
				if err != nil {
					return err
				}
				if held += k.had; held > maxHeld {
					return tenon.Errorf(tenon.CodeTooLarge, "the file cannot be imported: its runs leave one conversation in too many places")
				}
				stack = append(stack, k)
			}
		}
	}
	for i := range d.Runs {
		if !d.Runs[i].seen {
			return badImport("run %s goes on from itself, by way of others", d.Runs[i].Run.ID)
		}
	}
	return nil
}

// begin makes the core of a run.
func (d *document) begin(r *documentRun, parent tenon.Core) (*folding, error) {
	f := &folding{run: r}
	r.seen = true
	if r.Run.Core == workflow.Version {
		var err error
		if f.core, err = d.beginFlow(r); err != nil {
			return nil, badImport("run %s: %w", r.Run.ID, err)
		}
		return f, nil
	}
	if r.Run.Core == agent.DirectVersion {
		var spec agent.DirectSpec
		if err := json.Unmarshal(r.spec.Data, &spec); err != nil {
			return nil, badImport("the spec of run %s cannot be read: %w", r.Run.ID, err)
		}
		f.core = agent.NewDirect(spec)
		return f, nil
	}
	var spec agent.Spec
	if err := json.Unmarshal(r.spec.Data, &spec); err != nil {
		return nil, badImport("the spec of run %s cannot be read: %w", r.Run.ID, err)
	}
	for _, m := range spec.History {
		if m == nil {
			return nil, badImport("the history of run %s has a message that is null", r.Run.ID)
		}
	}
	from, _ := parent.(*agent.State) // nil for a run that begins a conversation
	if from != nil {
		f.had = len(from.History())
	}
	f.core = agent.New(spec, from)
	return f, nil
}

// beginFlow makes the core of a workflow's run, whose file came along.
func (d *document) beginFlow(r *documentRun) (tenon.Core, error) {
	var spec workflow.Spec
	if err := json.Unmarshal(r.spec.Data, &spec); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "its spec cannot be read: %w", err)
	}
	for _, b := range d.Blobs {
		if b.Digest != spec.Workflow {
			continue
		}
		w, _, err := config.UnpackWorkflow("its workflow", b.Data)
		if err != nil {
			return nil, err
		}
		return workflow.New(w, spec)
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "its workflow is not there")
}

// step folds events up to one that another run goes on from, or the last one.
func (f *folding) step() error {
	for f.next < len(f.run.Events) {
		if err := f.core.Apply(f.run.Events[f.next].Event); err != nil {
			return badImport("the journal cannot be folded: %w", err)
		}
		f.next++
		if f.kid < len(f.run.kids) && f.run.kids[f.kid].seq == f.next {
			break
		}
	}
	return nil
}

// end checks what the run has said: all of it, and what the model sees of it where that
// is something else.
func (f *folding) end() error {
	s, ok := f.core.(*agent.State)
	if !ok {
		return nil
	}
	own := s.History()[f.had:]
	if s.Spec().Task == agent.TaskCompact {
		own = nil
	}
	if err := checkSaid(own); err != nil {
		return badImport("what was said in run %s cannot be handed to a model: %w", f.run.Run.ID, err)
	}
	for i := range f.run.Events {
		if f.run.Events[i].Kind != agent.EventCompacted {
			continue
		}
		if err := checkSaid(s.Messages()); err != nil {
			return badImport("what run %s leaves of the conversation cannot be handed to a model: %w", f.run.Run.ID, err)
		}
		break
	}
	return nil
}

// checkSaid reports what no provider would take: a conversation begins with the user,
// every call has its one result right behind it, in order, and parts stand where they
// can.
func checkSaid(messages []*tenon.Message) error {
	var open []*tenon.ToolCall // of the message before
	for i, m := range messages {
		if m.Role != tenon.RoleTool && len(open) > 0 {
			return tenon.Errorf(tenon.CodeInvalid, "message %d: the call of '%s' has no result", i, shorten(open[0].Name, titleLen))
		}
		said := false
		for _, p := range m.Parts {
			if err := checkSaidPart(m.Role, p, &open); err != nil {
				return tenon.Errorf(tenon.CodeInvalid, "message %d: %w", i+1, err)
			}
			said = said || p.Type != tenon.PartText || strings.TrimSpace(p.Text) != ""
		}
		switch {
		case i == 0 && m.Role != tenon.RoleUser:
			return tenon.Errorf(tenon.CodeInvalid, "message 1 is of role '%s', and a user begins", shorten(string(m.Role), titleLen))
		case m.Role == tenon.RoleUser && !said:
			return tenon.Errorf(tenon.CodeInvalid, "message %d says nothing", i+1)
		case m.Role == tenon.RoleTool && len(open) > 0:
			return tenon.Errorf(tenon.CodeInvalid, "message %d: the call of '%s' has no result", i+1, shorten(open[0].Name, titleLen))
		case m.Role == tenon.RoleAssistant:
			open = m.Calls()
		}
	}
	if len(open) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "the call of '%s' has no result", shorten(open[0].Name, titleLen))
	}
	return nil
}

func checkSaidPart(role tenon.Role, p tenon.Part, open *[]*tenon.ToolCall) error {
	fits := false
	switch role {
	case tenon.RoleUser:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartImage
	case tenon.RoleAssistant:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartThinking || p.Type == tenon.PartOpaque || p.Type == tenon.PartCall && p.Call != nil
	case tenon.RoleTool:
		fits = p.Type == tenon.PartResult && p.Result != nil
	}
	switch {
	case !fits:
		return tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' cannot stand in a message of role '%s'", shorten(p.Type, titleLen), shorten(string(role), titleLen))
	case p.Type == tenon.PartImage:
		if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil || p.Data == "" || p.MimeType == "" {
			return tenon.Errorf(tenon.CodeInvalid, "an image needs mime_type and its bytes as base64")
		}
	case p.Type == tenon.PartResult:
		if len(*open) == 0 {
			return tenon.Errorf(tenon.CodeInvalid, "a result without a call")
		}
		*open = (*open)[1:]
	}
	return nil
}
