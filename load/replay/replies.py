"""What an agent says on the telephone, for load on the voice alone: short and long, with numbers, names and times."""

from __future__ import annotations

REPLIES = (
    "Yes, of course. Could you give me your order number, please?",
    "Thank you. I have found your booking for two people on Friday the fourteenth at half past seven.",
    "I am sorry to hear that. Let me see what I can do for you.",
    "The total comes to one hundred and twenty-nine dollars and fifty cents, including delivery.",
    "No problem at all.",
    "Your parcel left our warehouse this morning, and it should be with you tomorrow between nine and twelve.",
    "We are open from eight in the morning until six in the evening, Monday to Friday, and until noon on Saturdays.",
    "Just to be sure, was that M as in Mike, or N as in November?",
    "I have changed the address to fourteen Maple Street. You will get a message to confirm it within a few minutes.",
    "That is correct.",
    "Could you hold the line for a moment while I check that for you?",
    "The earliest appointment I can offer you is Tuesday at ten fifteen with Doctor Keller. Would that suit you?",
    "Please restart the router by holding the button on the back for ten seconds, then tell me which lights you see.",
    "You can cancel free of charge up to twenty-four hours before you arrive.",
    "I understand. In that case I would suggest the larger plan, which costs four dollars more a month.",
    "Is there anything else I can help you with today?",
    "The refund is on its way. It takes three to five working days, depending on your bank.",
    "Sorry, I did not catch that. Could you say it again?",
    "Your balance is three hundred and eighteen dollars and four cents. The next payment is due on the first of May.",
    "I will connect you with a colleague from billing. May I note a number to call you back?",
    "Goodbye, and have a nice day.",
)
