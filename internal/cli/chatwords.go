package cli

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/transcript"
)

// screenHelp lists the commands of chat on the screen, and its keys.
const screenHelp = chatHelp + `
/model NAME     answer with another model; without a name, choose one
/login PROVIDER save the API key of a provider, such as openai, and use its model
/agent NAME     answer as another agent; without a name, choose one
/servers        the states of the servers
/sessions       the last conversations, to choose one
/resume ID      continue another conversation; without an id, choose one
/new            begin a new conversation
/allowed        the tools that are allowed for later calls, to withdraw one
/retry          resume the last question if it failed, or ask it again if it was stopped
/fork           continue in a copy of this conversation
/undo           continue in a copy that ends before the last question
/cost           the tokens and the cost so far
/copy           copy the last answer
/export FILE    write the conversation to FILE.md or FILE.json
/theme NAME     change the colours; without a name, list the themes

Enter sends, Alt-Enter and Ctrl-J add a line, Ctrl-G opens $EDITOR, Tab completes.
@FILE attaches a file, as does the path of a picture that is pasted or dropped.
Ctrl-V attaches the picture in the clipboard.
Up and Ctrl-R recall earlier inputs. Page up, page down and the mouse wheel scroll, Ctrl-F searches.
Ctrl-O unfolds tool calls and reasoning, Shift-Tab switches approvals, Ctrl-C stops the answer, twice leaves.
Hold Shift to select text with the mouse.`

// screenCommands returns the commands of chat on the screen, with what they do, as screenHelp has them.
func screenCommands() (list [][2]string) {
	for line := range strings.SplitSeq(screenHelp, "\n") {
		name, about, found := strings.Cut(line, " ")
		if !found || !strings.HasPrefix(name, "/") {
			continue
		}
		about = strings.TrimLeft(about, " ")
		if arg, rest, _ := strings.Cut(about, " "); arg == strings.ToUpper(arg) {
			name, about = name+" "+arg, strings.TrimLeft(rest, " ")
		}
		list = append(list, [2]string{name, about})
	}
	return list
}

// screenWords are the commands of chat on the screen only.
var screenWords = []string{"/agent", "/allowed", "/copy", "/cost", "/export", "/fork", "/login", "/model", "/new",
	"/resume", "/retry", "/servers", "/sessions", "/theme", "/undo"}

// word carries out a command that begins with a slash.
func (t *talk) word(ctx context.Context, text string) error {
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/help":
		t.p.Send(tui.Page{Text: screenHelp})
	case "/session":
		if id := t.session(); id != "" {
			t.note("%s", id)
			return nil
		}
		return t.a.chatWord(ctx, t.h, &asking{}, text)
	case "/model":
		return t.switchModel(ctx, rest)
	case "/login":
		return t.login(ctx, rest)
	case "/agent":
		return t.switchAgent(rest)
	case "/servers":
		return t.listServers(ctx)
	case "/sessions":
		return t.listSessions(ctx)
	case "/resume":
		return t.resume(ctx, rest)
	case "/new":
		t.begins("")
		t.note("a new conversation begins with the next question")
	case "/retry":
		return t.retry(ctx)
	case "/fork":
		return t.fork(ctx, "")
	case "/undo":
		return t.undo(ctx)
	case "/allowed":
		return t.allowed(ctx, rest)
	case "/cost":
		t.tellCost()
	case "/copy":
		return t.copyLast()
	case "/export":
		return t.export(ctx, rest)
	case "/theme":
		return t.switchTheme(rest)
	default:
		if !slices.Contains(chatWords, text) {
			t.note("%s", noWord(text, slices.Concat(chatWords, screenWords)))
			return nil
		}
		return t.a.chatWord(ctx, t.h, t.q, text)
	}
	return nil
}

// begins shows another conversation.
func (t *talk) begins(session string) {
	t.mu.Lock()
	t.q.session, t.q.fork, t.totals, t.last = session, false, totals{}, ""
	t.mu.Unlock()
	t.p.Send(tui.Cleared{})
}

func (t *talk) switchModel(ctx context.Context, name string) error {
	if name == "" {
		list, err := t.h.Models().List(ctx, false)
		if err != nil {
			return err
		}
		t.mu.Lock()
		now := t.q.model
		t.mu.Unlock()
		c := tui.Choices{Title: "a model; any other: /model PROVIDER/NAME", Command: "/model"}
		for _, m := range list {
			c.Items = append(c.Items, tui.Choice{Value: m.Name, About: m.Model, Now: m.Name == now && now != ""})
		}
		t.p.Send(c)
		return nil
	}
	if here, ok := t.h.(*host.Host); ok {
		if err := checkModel(ctx, here, name); err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.q.model, t.q.switched, t.totals.model = name, true, ""
	t.mu.Unlock()
	t.note("the next question goes to %s", safeLine(name))
	return nil
}

func (t *talk) switchAgent(name string) error {
	here, ok := t.h.(*host.Host)
	if !ok && name == "" {
		return tenon.Errorf(tenon.CodeInvalid, "/agent NAME needs a name with --remote")
	}
	if ok {
		cfg := here.Service().Info().Config
		if name == "" {
			t.mu.Lock()
			now := t.q.agent
			t.mu.Unlock()
			c := tui.Choices{Title: "an agent", Command: "/agent"}
			for _, n := range slices.Sorted(maps.Keys(cfg.Agents)) {
				c.Items = append(c.Items, tui.Choice{Value: n, About: about(cfg.Agents[n].Description), Now: n == now})
			}
			if len(cfg.Agents) == 0 {
				t.note("there is only the default agent")
				return nil
			}
			t.p.Send(c)
			return nil
		}
		if _, err := cfg.Agent(name); err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.q.agent, t.totals.agent = name, ""
	t.mu.Unlock()
	t.note("the next question goes to agent %s", safeLine(name))
	return nil
}

func (t *talk) listServers(ctx context.Context) error {
	list, err := t.h.Servers().List(ctx)
	for _, s := range list {
		line := safeLine(s.Name) + "  " + string(s.State)
		if s.Tools >= 0 {
			line += "  " + plural(s.Tools, "tool")
		}
		if s.Error != nil {
			line += "  " + safeLine(s.Error.Message)
		}
		t.note("%s", line)
	}
	if err == nil && len(list) == 0 {
		t.note("no servers")
	}
	return err
}

func (t *talk) listSessions(ctx context.Context) error {
	list, err := t.h.Sessions().List(ctx, host.SessionFilter{Limit: 100})
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		t.note("no conversations yet")
		return nil
	}
	now := t.session()
	c := tui.Choices{Title: "a conversation to continue", Command: "/resume"}
	for _, s := range list {
		c.Items = append(c.Items, tui.Choice{Value: s.ID, About: t.a.when(s.Updated) + "  " + s.Title,
			Now: s.ID == now})
	}
	t.p.Send(c)
	return nil
}

func (t *talk) resume(ctx context.Context, ref string) error {
	if ref == "" {
		return t.listSessions(ctx)
	}
	s, err := t.h.Sessions().Get(ctx, ref)
	if err != nil {
		return err
	}
	t.begins(s.ID)
	t.showSession(ctx)
	return t.goOn(ctx)
}

// fork continues in a copy of the conversation up to a message.
func (t *talk) fork(ctx context.Context, at string) error {
	session := t.session()
	if session == "" {
		return tenon.Errorf(tenon.CodeInvalid, "nothing was said yet")
	}
	s, _, err := t.h.Sessions().Fork(ctx, host.Fork{Session: session, At: at})
	if err != nil {
		return err
	}
	t.begins(s.ID)
	t.showSession(ctx)
	t.note("this is the copy %s; %s stays as it was", s.ID, session)
	return nil
}

// undo continues before the last question.
func (t *talk) undo(ctx context.Context) error {
	session := t.session()
	if session == "" {
		return tenon.Errorf(tenon.CodeInvalid, "nothing was said yet")
	}
	before, err := beforeQuestion(ctx, t.h, session)
	if err != nil {
		return err
	}
	if before < 1 {
		t.begins("")
		t.note("the conversation was undone; the next question begins a new one, and %s stays as it was", session)
		return nil
	}
	return t.fork(ctx, strconv.Itoa(before))
}

// beforeQuestion returns the number of the message before the last question of a session. A message that was sent
// during the answer is a part of this question.
func beforeQuestion(ctx context.Context, h desk, session string) (int, error) {
	list, err := h.Sessions().Transcripts().Messages(ctx, session)
	if err != nil {
		return 0, err
	}
	isQuestion := func(m transcript.Message) bool {
		return m.Role == tenon.RoleUser && strings.TrimSpace(m.Text()) != ""
	}
	for i := len(list) - 1; i >= 0; i-- {
		if !isQuestion(list[i]) {
			continue
		}
		first := i
		for j := i - 1; j >= 0 && list[j].Run != "" && list[j].Run == list[i].Run; j-- {
			if isQuestion(list[j]) {
				first = j
			}
		}
		return list[first].N - 1, nil
	}
	return 0, tenon.Errorf(tenon.CodeInvalid, "there is no question to undo")
}

func (t *talk) tellCost() {
	t.mu.Lock()
	s := t.totals
	t.mu.Unlock()
	text := thousands(s.tokens) + " tokens in this conversation since it was opened; the last request had " +
		thousands(s.context)
	if s.priced {
		text += "; " + s.cost.String()
	} else {
		text += "; no price is known"
	}
	t.note("%s", text)
}

func (t *talk) copyLast() error {
	t.mu.Lock()
	text := t.last
	t.mu.Unlock()
	if text == "" {
		return tenon.Errorf(tenon.CodeInvalid, "there is no answer to copy")
	}
	t.p.Send(tui.Copied{Text: text})
	t.note("the last answer is in the terminal's clipboard, if the terminal allows it")
	return nil
}

func (t *talk) export(ctx context.Context, file string) error {
	session := t.session()
	format := host.FormatMarkdown
	switch {
	case session == "":
		return tenon.Errorf(tenon.CodeInvalid, "nothing was said yet")
	case strings.HasSuffix(file, ".json"):
		format = host.FormatJSON
	case !strings.HasSuffix(file, ".md"):
		return tenon.Errorf(tenon.CodeInvalid, "/export needs a file whose name ends in .md or .json")
	}
	var b strings.Builder
	if err := t.h.Sessions().Transcripts().Export(ctx, &b, session, format); err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return tenon.Errorf(tenon.CodeConflict, "%s exists; name another file", file)
	}
	if err := writeFile(file, []byte(b.String())); err != nil {
		return err
	}
	t.note("the conversation is in %s", file)
	return nil
}
