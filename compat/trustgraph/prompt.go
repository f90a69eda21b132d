package trustgraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// graphVariable matches a variable in a template of TrustGraph.
var graphVariable = lazyregexp.New(`\{\{\{?\s*([^{}]*?)\s*\}?\}\}`)

var (
	graphName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	celName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// ourVariable matches the expressions that fromGraph writes, and plain arguments.
	ourVariable = lazyregexp.New(`\{\{\s*(?:has\(args\.(\w+)\) \? args\.(\w+) : ""|` +
		`"([\w-]+)" in args \? args\["([\w-]+)"\] : ""|args\.(\w+)|args\["([\w-]+)"\])\s*\}\}`)
)

// celWords are names that CEL reserves.
var celWords = strings.Fields("as break const continue else false for function if import in let loop package " +
	"namespace null return true var void while")

// questionTemplate is the template of a tool of type text-completion in a file without a template for it.
const questionTemplate = "{{ args.question }}"

// prompt converts the type and the template of a tool of type prompt or text-completion. It returns false if the tool
// cannot be converted and is kept.
func (t *converter) prompt(e *graphEntry, kind, path string, entry, x, original *tree.Node) bool {
	entry.Append("kind", e.id, tree.TextAt(e.id, tenon.KindPrompt))
	if kind == graphCompletion {
		return t.completion(e, path, entry, x, original)
	}
	id, at := e.val.Get("template")
	key := "template"
	if id == nil {
		id, at = e.val.Get("template_id")
		key = "template_id"
	} else if other, k := e.val.Get("template_id"); other != nil {
		original.Append("template_id", k, other)
	}
	if id == nil || id.Kind != tree.Scalar {
		t.unsupported("tools", e, path, "'template' is missing")
		return false
	}
	text, reason := graphTemplate(t.prompts, id.Val)
	if reason != "" {
		t.unsupported("tools", e, path, reason)
		return false
	}
	t.used = true
	original.Append(key, at, id)
	entry.Append("template", at, tree.TextAt(id, text))
	return true
}

// completion converts a tool of type text-completion. Its template is the one with the id question.
func (t *converter) completion(e *graphEntry, path string, entry, x, original *tree.Node) bool {
	kind, at := e.val.Get("type")
	text, reason := graphTemplate(t.prompts, "question")
	if graphPromptOf(t.prompts, "question") == nil {
		text, reason = questionTemplate, ""
	} else if reason == "" {
		t.used = true
	}
	if reason != "" {
		t.unsupported("tools", e, path, reason)
		return false
	}
	original.Append("type", at, kind)
	entry.Append("template", at, tree.TextAt(at, text))
	if args, _ := e.val.Get("arguments"); args == nil {
		without(x, e.id, "arguments")
		entry.Append("arguments", e.id, questionArguments(e.id))
	}
	return true
}

// questionArguments are the arguments of a tool of type text-completion.
func questionArguments(at *tree.Node) *tree.Node {
	arg := tree.MapAt(at)
	arg.Append("name", at, tree.TextAt(at, "question"))
	arg.Append("type", at, tree.TextAt(at, "string"))
	arg.Append("description", at, tree.TextAt(at, "Text or question for the model"))
	arg.Append("required", at, tree.BoolAt(at, true))
	return tree.ListAt(at, arg)
}

// graphPromptOf returns a template of the group prompt. The template is an object with the key prompt, a JSON text of
// such an object, or a plain text.
func graphPromptOf(prompts *tree.Node, id string) *tree.Node {
	for _, key := range []string{"template." + id, id} {
		v, _ := prompts.Get(key)
		if v == nil {
			continue
		}
		if v.Kind == tree.Scalar {
			v = cmp.Or(jsonText(v), v)
		}
		if v.Kind == tree.Map {
			v, _ = v.Get("prompt")
		}
		if v != nil && v.Kind == tree.Scalar && v.Tag == "!!str" && v.Val != "" {
			return v
		}
	}
	return nil
}

// graphTemplate returns a template of the group prompt in the syntax of tenon, or the reason why that is not
// possible.
func graphTemplate(prompts *tree.Node, id string) (text, reason string) {
	v := graphPromptOf(prompts, id)
	if v == nil {
		return "", "there is no template '" + tenon.Visible(id) + "' in the group prompt"
	}
	return fromGraph(v.Val, id)
}

// fromGraph converts a template. A variable that a call does not set is empty, as in TrustGraph.
func fromGraph(s, id string) (text, reason string) {
	if strings.Contains(s, "{%") || strings.Contains(s, "{#") {
		return "", "the template '" + tenon.Visible(id) + "' has statements, which tenon's templates do not have"
	}
	text = graphVariable().ReplaceAllStringFunc(s, func(found string) string {
		name := graphVariable().FindStringSubmatch(found)[1]
		switch {
		case !graphName().MatchString(name):
			reason = "the template '" + tenon.Visible(id) + "' has the expression '" + tenon.Visible(name) +
				"', which is not the name of an argument"
			return found
		case celName().MatchString(name) && !slices.Contains(celWords, name):
			return "{{ has(args." + name + ") ? args." + name + ` : "" }}`
		}
		return `{{ "` + name + `" in args ? args["` + name + `"] : "" }}`
	})
	if reason == "" && strings.Contains(graphVariable().ReplaceAllString(s, ""), "{{") {
		reason = "the template '" + tenon.Visible(id) + "' has '{{' without '}}'"
	}
	return text, reason
}

// toGraph converts a template of tenon. It returns false if the template has an expression that is more than an
// argument.
func toGraph(s string) (string, bool) {
	if strings.Contains(ourVariable().ReplaceAllString(s, ""), "{{") {
		return "", false
	}
	return ourVariable().ReplaceAllStringFunc(s, func(found string) string {
		for _, name := range ourVariable().FindStringSubmatch(found)[1:] {
			if name != "" {
				return "{{" + name + "}}"
			}
		}
		return found
	}), true
}
