package cli

import (
	"slices"
	"strings"
)

// aliases are commands of other programs for conversations with a model, and the words of tenon that do the same.
var aliases = map[string]string{
	"/?":           "/help",
	"/add":         "@FILE in a message, which attaches a file",
	"/agents":      "/agent",
	"/bye":         "/exit",
	"/clear":       "/new",
	"/commands":    "/help",
	"/context":     "/cost",
	"/continue":    "/resume",
	"/edit":        "Ctrl-G, which opens the message in $EDITOR",
	"/editor":      "Ctrl-G, which opens the message in $EDITOR",
	"/file":        "@FILE in a message, which attaches a file",
	"/h":           "/help",
	"/history":     "/sessions",
	"/image":       "Ctrl-V, which attaches the picture in the clipboard",
	"/load":        "/resume",
	"/mcp":         "/servers",
	"/models":      "/model",
	"/paste":       "Ctrl-V, which attaches the picture in the clipboard",
	"/permissions": "/allowed",
	"/q":           "/exit",
	"/redo":        "/retry",
	"/regenerate":  "/retry",
	"/reset":       "/new",
	"/revert":      "/undo",
	"/rewind":      "/undo",
	"/save":        "/export FILE",
	"/status":      "/session",
	"/summarize":   "/compact",
	"/themes":      "/theme",
	"/tokens":      "/cost",
	"/usage":       "/cost",
}

// noWord says that there is no such command, and names the one that is probably meant. words are the commands here.
func noWord(text string, words []string) string {
	name, _, _ := strings.Cut(text, " ")
	told := "there is no " + safeLine(text)
	ours, ok := aliases[strings.ToLower(name)]
	word, _, _ := strings.Cut(ours, " ")
	if slices.Contains(words, name) { // it takes no argument
		return told + "; " + name + " stands alone"
	}
	if ok && (!strings.HasPrefix(word, "/") || slices.Contains(words, word)) {
		return told + "; use " + ours
	}
	return told + didYouMean(name, words)
}
