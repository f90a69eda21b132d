package textcall

import (
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// This file recognizes text in front of a call which says that the call is not to be made. It knows usual wordings in
// English. Other words, and other languages, do not stop a call; the rules decide about it as about any call.

// maxLead bounds the text in front of a call that is examined, in bytes.
const maxLead = 400

// Parts of the expressions below.
const (
	// running are the words for running a call. Participles such as called are not among them, because a call often
	// follows "I have not called it".
	running = `(?:run|running|execute|executing|call|calling|invoke|invoking|make|making|perform|performing|issue|` +
		`send|sending|use|using|trigger|carry out|follow|obey|repeat)`
	refusing = `(?:\bnot\b|n't\b|\bdont\b|\bwont\b|\bnever\b|\bcannot\b|\brefus(?:e|ing) to\b|` +
		`\bdeclin(?:e|ing) to\b|\bunable to\b)`
	thisCall = `(?:this|that|it|these|those|the following|such|the tool|the (?:\w+ )?(?:call|calls|command|request|` +
		`action|step|instruction|instructions))\b`
	// saying are verbs for a text that contains a call, and ordering are verbs for a text that asks for one.
	saying   = `(?:says?|said|reads?|contains?|contained|includes?|included|has|had|shows?|showed|quotes?)`
	ordering = `(?:says?|said|asks?|asked|tells?|told|wants?|wanted|instructs?|instructed|requests?|requested|` +
		`orders?|ordered)(?: (?:me|us|you|the (?:\w+ )?(?:model|assistant|agent)))?` +
		` (?:to|that i|that i should|i should)`
	others = `(?:it|page|document|file|result|results|text|email|mail|message|site|website|output|note|comment|` +
		`instruction|instructions|article|issue|readme|attacker|injection|they)`
)

var (
	// refusal is a refusal with the call as its object, or without an object: "I will not run this", "do not call:".
	refusal = lazyregexp.New(refusing + `(?: \w+){0,3} ` + running + `(?: ` + thisCall + `|[ ]*[:.!]*$)`)
	// undone is a refusal to do something. "I cannot do this" is none, because a call of a tool often follows it.
	undone = lazyregexp.New(`(?:will not|won't|would not|wouldn't|must not|mustn't|should not|shouldn't|not going to|` +
		`never|do not|don't|refuse to|decline to) (?:do|be doing) (?:this|that|it|so)\b`)
	// forbidden is a refusal in the passive voice: "this must not be run", "it is not allowed".
	forbidden = lazyregexp.New(refusing + ` be (?:run|executed|called|invoked|made|performed|sent|used|followed)\b|` +
		`\b(?:this|it|that|call)\b[^.]{0,40}(?:\bforbidden|(?:\bnot|n't) (?:allowed|permitted|safe))`)
	// example ends with the words that introduce an example or a form.
	example = lazyregexp.New(`(?:\bfor example|\bfor instance|\be\.g\.?|\bsuch as|\bhypothetically|` +
		`\b(?:an|another) example(?: call| of [\w ]{1,40}| is)?|^example(?: call)?|` +
		`\b(?:looks?|be|written|something) like(?: this)?|\blike (?:this|so)|\b(?:call|command|request|it) would be|` +
		`\b(?:form|format|syntax) is|` +
		`\b(?:you|one|someone|people) (?:would|could|can|might|should) ` + running + `[\w ]{0,40}) ?[:,]?$`)
	// reported ends with the words that introduce the words of somebody else, but not of the user.
	reported = lazyregexp.New(`\b` + others + `\b(?: [\w']+){0,4}? (?:` + saying + `(?: ` + thisCall + `)?|` +
		ordering + ` ` + running + `(?: [\w'-]+){0,5}) ?:$`)
	// offer is a question whether the call shall be made.
	offer = lazyregexp.New(`\b(?:shall|should|may|can|could) (?:i|we) (?:\w+ )?` + running + `\b[^?]*\?$|` +
		`\b(?:do you want|would you like)\b[^?]*\b` + running + `\b[^?]*\?$`)
	// intent says that a call follows, whatever was said before it.
	intent = lazyregexp.New(`\b(?:i will|i'll|let me|let's|i am going to|i'm going to|i need to|i have to|i must|` +
		`i should|i can|i shall|we will|we need to|we can) (?:\w+ ){0,2}?(?:` + running + `|check|look|search|get|` +
		`fetch|try|do|query|find|ask|read|write|list)\b|\b(?:i|i now) (?:call|run|use|execute|invoke)\b|` +
		`\b(?:without|unless|until|yet|myself|directly|again|twice)\b`)
	// turn separates a clause from one that says the opposite, or that draws a conclusion.
	turn = lazyregexp.New(`(?:[,;]| [–—-])? (?:but|so|instead|therefore|however|rather|then|thus)\b,? |;`)
)

// Withheld reports whether the text in front of a call says that the call is not to be made: a refusal, an example, a
// form, the words of somebody else, or a question. Only the last sentence counts, and in it what follows a turn such as
// "but".
func Withheld(before string) bool {
	s := lastSentence(before)
	if s == "" {
		return false
	}
	if offer().MatchString(s) {
		return true
	}
	if all := turn().FindAllStringIndex(s, -1); all != nil {
		s = s[all[len(all)-1][1]:]
	}
	for _, at := range [][]int{refusal().FindStringIndex(s), undone().FindStringIndex(s),
		forbidden().FindStringIndex(s)} {
		if at != nil && !intent().MatchString(s[at[1]:]) {
			return true
		}
	}
	return reported().MatchString(s) || example().MatchString(s) && !intent().MatchString(s)
}

// lastSentence returns the last sentence of a text in lower case, with single spaces, plain apostrophes and no marks of
// Markdown. It ignores the beginning of a code block at the end.
func lastSentence(text string) string {
	text = strings.TrimSpace(Mend(text))
	text = strings.ToValidUTF8(text[max(0, len(text)-maxLead):], "")
	for {
		i := strings.LastIndexByte(text, '\n')
		if !strings.HasPrefix(strings.TrimSpace(text[i+1:]), "```") {
			text = text[i+1:]
			break
		}
		text = strings.TrimSpace(text[:max(i, 0)])
	}
	text = strings.ToLower(strings.NewReplacer("’", "'", "*", "", "_", " ", "`", "").Replace(text))
	text = strings.Join(strings.Fields(text), " ")
	for i := len(text) - 1; i > 0; i-- {
		if text[i] == ' ' && strings.IndexByte(".!?", text[i-1]) >= 0 && !strings.HasSuffix(text[:i], "e.g.") {
			return text[i+1:]
		}
	}
	return text
}
