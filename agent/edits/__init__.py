"""What happens to a file after an edit: formatters, and checks whose new findings the model is told of."""
