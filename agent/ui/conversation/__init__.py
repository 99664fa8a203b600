"""The conversation as a person sees it: `view.ConversationView` is the widget, the rest serves it."""
