package openenv

// object is a JSON schema of an object.
func object(description string, required []string, properties fields) fields {
	return fields{"type": "object", "description": description, "properties": properties, "required": required, "additionalProperties": false}
}

func text(description string) fields {
	return fields{"type": "string", "description": description}
}

func number(description string) fields {
	return fields{"type": "integer", "description": description}
}

func truth(description string) fields {
	return fields{"type": "boolean", "description": description}
}

func texts(description string) fields {
	return fields{"anyOf": []fields{{"type": "array", "items": fields{"type": "string"}}, {"type": "null"}}, "description": description}
}

// schemas says what actions, observations and states look like.
func schemas() fields {
	return fields{
		"action": object("What to do, as text.", []string{"message"}, fields{
			"message": text("The action, such as: go to desk 1"), "metadata": fields{"type": "object", "description": "Not looked at."},
		}),
		"observation": object("What the world shows.", []string{"text"}, fields{
			"text": text("In words."), "admissible_commands": texts("Actions possible now, sorted; null: the world does not list them."),
			"more": truth("More are possible than can be listed."), "goal": text("What is to be done."), "won": truth("It was done."),
			"metadata": object("What is played.", []string{"task_id", "seed"}, fields{
				"task_id": text("Id of the task: reset takes it."), "split": text("Split of the task."), "family": text("Tasks of one kind."),
				"category": text("Shelf of the skill bank."), "seed": number("Seed of the episode: reset takes it."),
				"horizon": number("Most steps of an episode."), "steps": number("Steps taken."),
				"admissible_actions":  texts("The same as admissible_commands."),
				"action_was_possible": fields{"anyOf": []fields{{"type": "boolean"}, {"type": "null"}}, "description": "Of the last action; null: there was none."},
			}),
		}),
		"state": fields{"type": "object", "properties": fields{"episode_id": text("As reset was given, or made."), "step_count": number("Steps taken.")}},
	}
}

// openAPI lists the endpoints.
func openAPI(name, version string) fields {
	paths := fields{}
	for path, says := range map[string]string{
		"/health": "Whether the server works.", "/metadata": "What world this is.", "/schema": "What actions and observations look like.",
		"/guide": "Rules, horizon, splits.", "/list_environments": "The world's name.", "/" + name + "/splits": "Its splits.",
	} {
		paths[path] = fields{"get": fields{"summary": says, "responses": fields{"200": fields{"description": "OK"}}}}
	}
	for path, says := range map[string]string{
		"/" + name + "/tasks": "All tasks of a split.", "/" + name + "/num_tasks": "Their number.", "/" + name + "/task": "One of them.",
		"/" + name + "/task_range": "Some of them.", "/vary": "A variation of a task.", "/mcp": "The list of tools.",
	} {
		paths[path] = fields{"post": fields{"summary": says, "responses": fields{"200": fields{"description": "OK"}}}}
	}
	return fields{
		"openapi": "3.1.0",
		"info":    fields{"title": name, "version": "1.0.0", "description": "skillmaster " + version + ": an OpenEnv server. Episodes are played over the WebSocket /ws."},
		"paths":   paths,
	}
}
