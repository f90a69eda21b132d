package transcript

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// maxHeld bounds the total number of messages in the conversations that are in memory at the same time. Otherwise, many
// runs that fork a long conversation before its end would use too much memory.
const maxHeld = 16 << 20

// folding is a run whose journal is being folded.
type folding struct {
	run  *documentRun
	core tenon.Core
	next int // index of the next event
	kid  int // index in run.kids
	had  int // number of messages of the conversation that the run continues
}

// fold folds each journal with its core, after the run that it continues, and checks the conversations. Runs that
// continue each other in a cycle cannot be reached, which is an error.
func (d *document) fold(ctx context.Context, u unpack) error {
	held := 0
	for i := range d.Runs {
		slices.SortFunc(d.Runs[i].kids, func(a, b *documentRun) int { return a.seq - b.seq })
	}
	for i := range d.Runs {
		if d.Runs[i].Run.Parent != "" {
			continue
		}
		root, err := d.begin(&d.Runs[i], nil, u)
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
			if f.next == len(f.run.Events) { // end a run before its children, to hold a long conversation once
				if err := f.end(); err != nil {
					return err
				}
				stack, held = stack[:len(stack)-1], held-f.had
			}
			for ; f.kid < len(f.run.kids) && f.run.kids[f.kid].seq == f.next; f.kid++ {
				k, err := d.begin(f.run.kids[f.kid], f.core, u)
				if err != nil {
					return err
				}
				if held += k.had; held > maxHeld {
					return tenon.Errorf(tenon.CodeTooLarge,
						"the file cannot be imported: its runs leave one conversation in too many places")
				}
				stack = append(stack, k)
			}
		}
	}
	for i := range d.Runs {
		if !d.Runs[i].seen {
			return badImport("run %s continues itself, through other runs", d.Runs[i].Run.ID)
		}
	}
	return nil
}

// begin creates the core of a run.
func (d *document) begin(r *documentRun, parent tenon.Core, u unpack) (*folding, error) {
	f := &folding{run: r}
	r.seen = true
	if r.Run.Core == workflow.Version {
		spec, err := view.SpecOf[workflow.Spec](r.spec)
		if err != nil {
			return nil, badImport("%w", err)
		}
		if f.core, err = d.beginWorkflow(spec, u); err != nil {
			return nil, badImport("run %s: %w", r.Run.ID, err)
		}
		return f, nil
	}
	if r.Run.Core == agent.DirectVersion {
		spec, err := view.SpecOf[agent.DirectSpec](r.spec)
		if err != nil {
			return nil, badImport("%w", err)
		}
		f.core = agent.NewDirect(spec)
		return f, nil
	}
	spec, err := view.SpecOf[agent.Spec](r.spec)
	if err != nil {
		return nil, badImport("%w", err)
	}
	for _, m := range spec.History {
		if m == nil {
			return nil, badImport("the history of run %s has a message that is null", r.Run.ID)
		}
	}
	from, _ := parent.(*agent.State) // nil if the run does not continue another run
	if from != nil {
		f.had = len(from.History())
	}
	f.core = agent.New(spec, from)
	return f, nil
}

// beginWorkflow creates the core of a workflow's run from the workflow's file in the document.
func (d *document) beginWorkflow(spec workflow.Spec, u unpack) (tenon.Core, error) {
	for _, b := range d.Blobs {
		if b.Digest != spec.Workflow {
			continue
		}
		w, err := u("its workflow", b.Data)
		if err != nil {
			return nil, err
		}
		return workflow.New(w, spec)
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "the file does not contain its workflow")
}

// step folds events up to the next event after which another run continues, or up to the last event.
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

// end checks the messages of the run. It also checks the compacted conversation, which is sent to the model.
func (f *folding) end() error {
	s, ok := f.core.(*agent.State)
	if !ok {
		return nil
	}
	own := s.History()[f.had:]
	if s.Spec().Task == agent.TaskCompact {
		own = nil
	}
	if err := checkMessages(own); err != nil {
		return badImport("a model would reject the messages of run %s: %w", f.run.Run.ID, err)
	}
	for i := range f.run.Events {
		if f.run.Events[i].Kind != agent.EventCompacted {
			continue
		}
		if err := checkMessages(s.Messages()); err != nil {
			return badImport("a model would reject the compacted conversation of run %s: %w", f.run.Run.ID,
				err)
		}
		break
	}
	return nil
}

// checkMessages reports messages that providers reject. A conversation must begin with the user, results must follow
// their calls in order, and each part must be allowed for the role of its message.
func checkMessages(messages []*tenon.Message) error {
	var open []*tenon.ToolCall // calls of the previous message
	for i, m := range messages {
		if m.Role != tenon.RoleTool && len(open) > 0 {
			return tenon.Errorf(tenon.CodeInvalid, "message %d: the call of '%s' has no result", i,
				tenon.Shorten(open[0].Name, shortTitle))
		}
		said := false
		for _, p := range m.Parts {
			if err := checkMessagePart(m.Role, p, &open); err != nil {
				return tenon.Errorf(tenon.CodeInvalid, "message %d: %w", i+1, err)
			}
			said = said || p.Type != tenon.PartText || strings.TrimSpace(p.Text) != ""
		}
		switch {
		case i == 0 && m.Role != tenon.RoleUser:
			return tenon.Errorf(tenon.CodeInvalid, "message 1 has role '%s', but a conversation begins with the user",
				tenon.Shorten(string(m.Role), shortTitle))
		case (m.Role == tenon.RoleUser || m.Role == tenon.RoleSystem) && !said:
			return tenon.Errorf(tenon.CodeInvalid, "message %d is empty", i+1)
		case m.Role == tenon.RoleTool && len(open) > 0:
			return tenon.Errorf(tenon.CodeInvalid, "message %d: the call of '%s' has no result", i+1,
				tenon.Shorten(open[0].Name, shortTitle))
		case m.Role == tenon.RoleAssistant:
			open = m.Calls()
		}
	}
	if len(open) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "the call of '%s' has no result",
			tenon.Shorten(open[0].Name, shortTitle))
	}
	return nil
}

func checkMessagePart(role tenon.Role, p tenon.Part, open *[]*tenon.ToolCall) error {
	fits := false
	switch role {
	case tenon.RoleUser:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartImage || isRemote(role, p)
	case tenon.RoleAssistant:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartThinking || p.Type == tenon.PartOpaque ||
			p.Type == tenon.PartCall && p.Call != nil || p.Type == tenon.PartImage || p.Type == tenon.PartFile
	case tenon.RoleTool:
		fits = p.Type == tenon.PartResult && p.Result != nil
	case tenon.RoleSystem:
		fits = p.Type == tenon.PartText
	}
	switch {
	case !fits:
		return tenon.Errorf(tenon.CodeInvalid, "a message of role '%s' cannot have a part of type '%s'",
			tenon.Shorten(string(role), shortTitle), tenon.Shorten(p.Type, shortTitle))
	case isRemote(role, p):
	case p.Type == tenon.PartImage, p.Type == tenon.PartFile:
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
