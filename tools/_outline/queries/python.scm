(class_definition name: (identifier) @name) @definition
(function_definition name: (identifier) @name) @definition
(module (expression_statement (assignment left: (identifier) @name)) @definition)
