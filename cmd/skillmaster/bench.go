package main

// benchCmd measures parts of the program.
type benchCmd struct {
	Env    benchEnvCmd    `cmd:"" help:"Steps and resets a second of a world, and what an episode costs in memory."`
	Engine benchEngineCmd `cmd:"" help:"Tokens a second of the embedded transformer, training and sampling."`
	Probe  benchProbeCmd  `cmd:"" help:"What a probe says of an edit whose effect is known: bias, noise, cost."`
}
