"""The form that edits specs: their texts, fields and files, and the processes that plan and apply them."""
