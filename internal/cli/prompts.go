package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newPrompts(a *app) *cobra.Command {
	cmd := group("prompts", "Prompts that servers offer: list, get", "prompt")
	cmd.AddCommand(newPromptsList(a), newPromptsGet(a))
	return cmd
}

func newPromptsList(a *app) *cobra.Command {
	return offerList[host.ServerPrompt]{
		cmd: cobra.Command{
			Short: "List the prompts of the servers",
			Long: "Lists the prompts of all servers, or of one: the command of each in tenon chat, its arguments,\n" +
				"and its description. Required arguments are marked with *.\n\n",
			Example: "  tenon prompts list\n  tenon prompts list -- npx -y @modelcontextprotocol/server-everything",
		},
		known:  host.KnownContext.Prompts,
		header: []string{"prompt", "server", "arguments", "description"},
		row: func(p host.ServerPrompt) []string {
			return []string{"/" + p.Server + ":" + p.Name, p.Server, arguments(p.Arguments), firstLine(p.Description)}
		},
	}.command(a)
}

// arguments names the arguments of a prompt.
func arguments(list []host.PromptArgument) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
		if p.Required {
			names[i] += "*"
		}
	}
	return strings.Join(names, ", ")
}

func newPromptsGet(a *app) *cobra.Command {
	s := &adhoc{}
	cmd := &cobra.Command{
		Use:   "get SERVER NAME [KEY=TEXT]... [--url URL | -- COMMAND ARGS...]",
		Short: "Print a prompt with its arguments filled in",
		Long: "Prints a prompt, filled in by its server, as a model would read it. -o json prints the server's\n" +
			"answer. Leave out SERVER with --url or a command. You can also write both as /SERVER:NAME, as tenon\n" +
			"prompts list prints it.\n\n" + adhocHelp,
		Example: "  tenon prompts get github review repo=tenon\n  tenon prompts get simple-prompt -- npx -y " +
			"@modelcontextprotocol/server-everything",
		Args: args(1, -1, "the prompt's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.offers(cmd, s, args, func(ctx context.Context, h *host.Host, rest []string) error {
				server, name, rest, err := a.ofServer(cmd, h, s, rest, "the prompt's name")
				if err != nil {
					return err
				}
				values, err := promptArguments(rest, nil)
				if err != nil {
					return err
				}
				if err := checkPrompt(ctx, h, server, name, values); err != nil {
					return err
				}
				if a.isJSON() {
					raw, err := h.Service().Connections()[server].Prompt(ctx, name, values)
					if err != nil {
						return err
					}
					return a.printJSON(raw)
				}
				p, err := h.Servers().Context().FillPrompt(ctx, server, name, values)
				if err != nil {
					return err
				}
				for _, f := range p.Files {
					a.note("attached: %s", safeLine(f.MimeType))
				}
				if p.Text == "" {
					a.hint("the prompt has no text; -o json shows its media")
					return nil
				}
				return a.printText(p.Text)
			})
		},
	}
	rawFlag(a, cmd.Flags())
	s.flags(cmd)
	return cmd
}

// checkPrompt reports missing required arguments of a prompt, and arguments that it does not take, before the prompt is
// sent. A prompt that the server does not list, or a list that cannot be read, is left to the server.
func checkPrompt(ctx context.Context, h *host.Host, server, name string, values map[string]string) error {
	list, problems, err := h.Servers().Context().Prompts(ctx, server)
	if err != nil || len(problems) > 0 {
		return err
	}
	i := slices.IndexFunc(list, func(p host.ServerPrompt) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range list {
			names = append(names, p.Name)
		}
		if near := tenon.Nearest(name, names); near != "" {
			return tenon.Errorf(tenon.CodeNotFound, "server '%s' has no prompt '%s'; did you mean '%s'?", server,
				tenon.Visible(name), tenon.Visible(near))
		}
		return nil
	}
	takes := list[i].Arguments
	var missing []string
	for _, p := range takes {
		if _, given := values[p.Name]; p.Required && !given {
			missing = append(missing, "'"+tenon.Visible(p.Name)+"'")
		}
	}
	if len(missing) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "prompt '%s' of server '%s' needs %s: write it as %s=TEXT; the prompt "+
			"takes %s", tenon.Visible(name), server, strings.Join(missing, ", "), strings.Trim(missing[0], "'"),
			tenon.Visible(arguments(takes)))
	}
	return nil
}

// ofServer splits the arguments of a verb into a server, the name of its prompt or resource, and the rest.
func (a *app) ofServer(cmd *cobra.Command, h *host.Host, s *adhoc, words []string, what string) (server, name string,
	rest []string, err error) {
	all := serverNames(h)
	// The lists print both as one word.
	if len(words) > 0 && (strings.HasPrefix(words[0], "/") || strings.HasPrefix(words[0], "@")) {
		if at, name, ok := strings.Cut(words[0][1:], ":"); ok && slices.Contains(all, at) {
			return at, name, words[1:], nil
		}
	}
	if s.given() && len(all) == 1 && len(words) > 0 {
		return all[0], words[0], words[1:], nil
	}
	switch {
	case len(words) == 0:
		return "", "", nil, usage(cmd, "the server's name is missing")
	case !slices.Contains(all, words[0]):
		return "", "", nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", words[0],
			didYouMean(words[0], all))
	case len(words) == 1:
		return "", "", nil, usage(cmd, "%s is missing", what)
	}
	return words[0], words[1], words[2:], nil
}

// promptArguments parses KEY=TEXT words. If the prompt takes exactly one argument, plain words are its text.
func promptArguments(words []string, takes []host.PromptArgument) (map[string]string, error) {
	values := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" || len(takes) > 0 &&
			!slices.ContainsFunc(takes, func(p host.PromptArgument) bool { return p.Name == k }) {
			if len(takes) == 1 && len(values) == 0 {
				return map[string]string{takes[0].Name: strings.Join(words, " ")}, nil
			}
			have := ""
			if len(takes) > 0 {
				have = "; the prompt takes " + arguments(takes)
			}
			return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' is not KEY=TEXT%s", tenon.Visible(w), have)
		}
		values[k] = v
	}
	return values, nil
}

// chatPrompt fills in the prompt of a line "/SERVER:PROMPT KEY=TEXT…". A unique prefix of its name is enough. ok is
// false if the line names no server.
func (a *app) chatPrompt(ctx context.Context, h *host.Host, text string) (p host.Prompted, ok bool, err error) {
	words := quoted(strings.TrimPrefix(text, "/"))
	if len(words) == 0 {
		return p, false, nil
	}
	server, _, colon := strings.Cut(words[0], ":")
	all := serverNames(h)
	if !colon || !slices.Contains(all, server) {
		return p, false, nil
	}
	list, problems, err := h.Servers().Context().Prompts(ctx, server) // the prompt needs its server anyway
	if err == nil && len(problems) > 0 {
		err = problems[0].Err
	}
	if err != nil {
		return p, true, err
	}
	var fit []host.ServerPrompt
	for _, one := range list {
		name := server + ":" + one.Name
		if name == words[0] {
			fit = []host.ServerPrompt{one}
			break
		}
		if strings.HasPrefix(name, words[0]) {
			fit = append(fit, one)
		}
	}
	switch {
	case len(fit) == 0:
		names := make([]string, len(list))
		for i, one := range list {
			names[i] = server + ":" + one.Name
		}
		return p, true, tenon.Errorf(tenon.CodeNotFound, "server '%s' has no prompt '%s'%s", server, words[0],
			didYouMean(words[0], names))
	case len(fit) > 1:
		for _, one := range fit {
			a.showPrompt(one)
		}
		return p, true, tenon.Errorf(tenon.CodeInvalid, "several prompts begin with '%s'", tenon.Visible(words[0]))
	}
	values, err := promptArguments(words[1:], fit[0].Arguments)
	if err != nil {
		return p, true, err
	}
	for _, arg := range fit[0].Arguments {
		if _, given := values[arg.Name]; given || !arg.Required {
			continue
		}
		if !a.canAsk() {
			return p, true, tenon.Errorf(tenon.CodeInvalid, "the prompt needs %s: write %s=TEXT after it", arg.Name,
				arg.Name)
		}
		if values[arg.Name], err = a.ask(ctx,
			"  "+safeLine(strings.TrimSpace(arg.Name+" "+arg.Description))+": "); err != nil {
			return p, true, err
		}
	}
	if p, err = h.Servers().Context().FillPrompt(ctx, server, fit[0].Name, values); err == nil && p.Text == "" {
		err = tenon.Errorf(tenon.CodeInvalid, "prompt '%s' of server '%s' has no text, which a question needs; "+
			"tenon prompts get shows what it has", tenon.Visible(fit[0].Name), server)
	}
	return p, true, err
}

func (a *app) showPrompt(p host.ServerPrompt) {
	line := "/" + p.Server + ":" + p.Name
	if names := arguments(p.Arguments); names != "" {
		line += "  (" + names + ")"
	}
	a.note("%s", shorten(safeLine(line+"  "+firstLine(p.Description)), a.width()))
}

// quoted splits a line into words. Double quotes group several words into one.
func quoted(line string) []string {
	var words []string
	var b strings.Builder
	open, begun := false, false
	for _, r := range line {
		switch {
		case r == '"':
			open, begun = !open, true
		case !open && (r == ' ' || r == '\t'):
			if begun {
				words, begun = append(words, b.String()), false
				b.Reset()
			}
		default:
			begun = true
			b.WriteRune(r)
		}
	}
	if begun {
		words = append(words, b.String())
	}
	return words
}

func newResourcesRead(a *app) *cobra.Command {
	s := &adhoc{}
	cmd := &cobra.Command{
		Use:   "read SERVER URI [--url URL | -- COMMAND ARGS...]",
		Short: "Print the contents of a resource",
		Long: "Prints the contents of a resource. Hidden characters in text are escaped; with --raw a pipe gets\n" +
			"them unescaped. Other bytes are printed only if stdout is not a terminal. -o json prints the list\n" +
			"of contents. Leave out SERVER with --url or a command. You can also write both as @SERVER:URI, as\n" +
			"tenon resources list prints it.\n\n" + adhocHelp,
		Example: "  tenon resources read docs file:///README.md\n  tenon resources read docs file:///logo.png > " +
			"logo.png",
		Args: args(1, 2, "the resource's URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.offers(cmd, s, args, func(ctx context.Context, h *host.Host, rest []string) error {
				server, uri, rest, err := a.ofServer(cmd, h, s, rest, "the resource's URI")
				if err != nil {
					return err
				}
				if len(rest) > 0 {
					return usage(cmd, "unexpected argument '%s'", rest[0])
				}
				contents, err := h.Service().Connections()[server].Read(ctx, uri)
				if err != nil {
					return err
				}
				return a.printContents(contents)
			})
		},
	}
	rawFlag(a, cmd.Flags())
	s.flags(cmd)
	return cmd
}

func (a *app) printContents(contents []tenon.Content) error {
	if a.isJSON() {
		list := make([]json.RawMessage, len(contents))
		for i, c := range contents {
			var block struct{ Resource json.RawMessage }
			if json.Unmarshal(c.Raw, &block) != nil || block.Resource == nil {
				return tenon.Errorf(tenon.CodeProtocol, "the contents cannot be read")
			}
			list[i] = block.Resource
		}
		return a.printJSON(list)
	}
	for _, c := range contents {
		if c.Data == "" {
			if err := a.writeText(c.Text); err != nil {
				return err
			}
			continue
		}
		data, err := base64.StdEncoding.DecodeString(c.Data)
		switch {
		case err != nil:
			return tenon.Errorf(tenon.CodeProtocol, "%s is not base64: %w", safeLine(c.URI), err)
		case a.outTTY:
			return tenon.Errorf(tenon.CodeInvalid, "%s contains %d bytes of %s, which cannot be shown on a terminal: "+
				"redirect stdout to a file", safeLine(c.URI), len(data), fmt.Sprintf("%q", c.MimeType))
		}
		if err := a.writeBytes(data); err != nil {
			return err
		}
	}
	return nil
}
