// Package cloudtoken finds bearer tokens of Google Cloud and Microsoft Entra on this machine.
//
// Package model uses it for requests to Vertex AI and to Azure without a key. Google's tokens come from Application
// Default Credentials, which golang.org/x/oauth2/google finds: the file in GOOGLE_APPLICATION_CREDENTIALS, the sign-in
// of gcloud, workload identities, the metadata server. Entra's tokens come from the sources of Azure's own SDKs, in
// their order: a client secret in the environment, a federated token (workload identity), the managed identity of a
// service or a virtual machine, the sign-in of the az command.
//
// A [Source] keeps a token until shortly before it expires, and [Source.Forget] drops one that a service refused. The
// package never logs, and its errors contain no secret. Tokens are for the hosts of their cloud ([GoogleServes],
// [EntraServes]); other hosts would keep them.
//
// Sources: "How Application Default Credentials works" (Google Cloud), "OAuth 2.0 client credentials flow" and "How
// to use managed identities" (Microsoft Entra).
package cloudtoken
