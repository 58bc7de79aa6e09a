package alfworld

// phrases are the commands and answers of a game in one wording, made once and shared.
type phrases struct{}
